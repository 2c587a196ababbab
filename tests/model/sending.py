"""The model of send, schedule, dedup, fan-out and cancel."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from .world import Queue, Refused, Row, World

Draft = dict[str, Any]
"""A message to send: the fields of a `Row` that its sender gives."""

CONFLICT = None
MAX_PRIORITY = 1000


def send(world: World, target: str, drafts: list[Draft], at: int, ttl_ms: int) -> list[int]:
    """A sequence number per message; 0 where nothing was stored for it."""
    if not target:
        raise Refused("InvalidArgument")
    if any(abs(draft["priority"]) > MAX_PRIORITY for draft in drafts):
        raise Refused("InvalidArgument")
    if any(len(draft["body"]) > world.max_bytes for draft in drafts):
        raise Refused("MessageTooLarge")
    if at and at <= world.now:
        raise Refused("InvalidArgument")
    queues = [world.queues[name] for name in world.subscriptions(target)]
    if not queues:
        queues = [world.queue(target)]
    for queue in queues:
        if queue.ordering_mode == "group_fifo" and any(not draft["group"] for draft in drafts):
            raise Refused("GroupRequired")
    if len(drafts) == 1 and all(_known(world, q, drafts[0]) is CONFLICT for q in queues):
        raise Refused("DedupConflict")
    answer = [0] * len(drafts)
    for queue in queues:
        for index, draft in enumerate(drafts):
            seq = _send_one(world, queue, draft, at, ttl_ms)
            answer[index] = seq or answer[index]
    return answer


def key(draft: Draft) -> str:
    return draft.get("message_id") or sha256(draft["body"]).hexdigest()


def _known(world: World, queue: Queue, draft: Draft) -> int | None:
    """The sequence number of the first send of the same message, 0 if there was none,
    CONFLICT if its key was used with another body."""
    known = world.dedup.get((queue.id, key(draft)))
    if not queue.dedup_window_ms or known is None:
        return 0
    body, seq, seen_at = known
    if seen_at <= world.now - queue.dedup_window_ms:
        return 0
    return seq if body == draft["body"] else CONFLICT


def _send_one(world: World, queue: Queue, draft: Draft, at: int, ttl_ms: int) -> int:
    known = _known(world, queue, draft)
    if known is CONFLICT:
        return 0
    if known:
        return known
    ttl = ttl_ms or queue.default_ttl_ms
    if queue.default_ttl_ms:
        ttl = min(ttl, queue.default_ttl_ms)
    visible_at = at or world.now
    row = Row(
        seq=world.take_seq(),
        state="scheduled" if at else "active",
        enqueued_at=world.now,
        visible_at=visible_at,
        expires_at=visible_at + ttl if ttl else 0,
        ttl_ms=ttl,
        sort_at=queue.sort_at(visible_at),
        **draft,
    )
    queue.rows.append(row)
    if queue.dedup_window_ms:
        world.dedup[queue.id, key(draft)] = (draft["body"], row.seq, world.now)
    return row.seq


def cancel(world: World, name: str, seq: int) -> None:
    queue = world.queue(name)
    row = queue.row(seq)
    if row is None or row.state != "scheduled" or row.delivery_count:
        raise Refused("NotFound")
    finish(world, queue, row, "canceled")


def finish(world: World, queue: Queue, row: Row, outcome: str) -> None:
    queue.rows.remove(row)
    if queue.retain_completed_ms:
        queue.finished[row.seq] = (outcome, world.now)

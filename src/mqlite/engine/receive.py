"""Claiming messages, giving claims back, and fetching deferred messages."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Sequence
from typing import Final

from mqlite.engine import attempts, content, leases, lines, rows
from mqlite.engine.catalog import Queue, existing_queue, resolve_queue
from mqlite.engine.expiry import expire_active
from mqlite.engine.steps import (
    EXPIRY_DUE,
    LOCK_DUE,
    NOW,
    Due,
    Earliest,
    Event,
    Last,
    Many,
    Ready,
    Row,
    Statement,
    Steps,
    operation,
)
from mqlite.errors import InvalidArgument
from mqlite.model import (
    MAX_DEFERRED_BATCH,
    RESPONSE_BODY_BYTES,
    Lease,
    MessageData,
    ReceiveMode,
)

_READY: Final = """
    queue_id = ? AND state = 'active' AND head = 1 AND (expires_at = 0 OR expires_at > ?)
    ORDER BY priority DESC, sort_at, seq
"""
CLAIM_ONE: Final = f"""
    UPDATE mqlite_messages
       SET state = 'locked', locked_until = ?, lock_token = ?, delivery_count = delivery_count + 1
     WHERE seq = (SELECT seq FROM mqlite_messages WHERE {_READY} LIMIT 1)
    RETURNING {rows.CLAIMED}, EXISTS (
        SELECT 1 FROM mqlite_messages AS other INDEXED BY mqlite_messages_ready
         WHERE other.queue_id = mqlite_messages.queue_id AND other.state = 'active'
           AND other.head = 1 AND other.seq <> mqlite_messages.seq)
"""
SELECT_READY: Final = f"""
    SELECT seq, body_size, line, payload_id FROM mqlite_messages WHERE {_READY} LIMIT ?
"""
LOCK: Final = """
    UPDATE mqlite_messages
       SET state = 'locked', locked_until = ?, lock_token = ?, delivery_count = delivery_count + 1
     WHERE seq = ?
"""
SELECT_BY_SEQ: Final = f"""
    SELECT {rows.CLAIMED} FROM mqlite_messages WHERE seq IN (SELECT value FROM json_each(?))
"""
DELETE_BY_SEQ: Final = """
    DELETE FROM mqlite_messages WHERE seq IN (SELECT value FROM json_each(?))
"""
SELECT_DEFERRED: Final = """
    SELECT seq, body_size FROM mqlite_messages
     WHERE seq IN (SELECT value FROM json_each(?)) AND queue_id = ? AND state = 'deferred'
"""


class Claimed(list[MessageData]):
    """Messages handed to a receiver.

    `queue_id` is the queue that was looked at, `more` says that it has further claimable
    messages, `replayed` that the batch is that of an earlier attempt, `truncated` that the
    byte budget ended it.
    """

    more = False
    replayed = False
    truncated = False

    def __init__(self, messages: Iterable[MessageData] = (), *, queue_id: int = 0) -> None:
        super().__init__(messages)
        self.queue_id = queue_id

    def recheck(self, now: int) -> Claimed:
        """Without the leases that have already run out, with what remains of the others."""
        lost = False
        for message in self:
            message.lease_ms = left = max(message.locked_until_ms - now, 0)
            lost |= not left and message.locked_until_ms > 0
        if lost:
            self[:] = [m for m in self if not m.locked_until_ms or m.lease_ms]
        return self


@operation()
def claim(
    queue_name: str,
    limit: int,
    *,
    mode: ReceiveMode = "peek_lock",
    attempt_id: str = "",
    lease_ms: int = 0,
) -> Steps[Claimed]:
    """Claim up to `limit` messages in order of priority, then sequence.

    The answer's bodies stop at 32 MiB, after at least one message. `lease_ms` replaces the
    queue's lock duration. A retry under the same `attempt_id` answers the first batch.
    Raises NotFound, InvalidArgument.
    """
    queue = yield from existing_queue(queue_name)
    now: int = yield NOW
    claimed = Claimed(queue_id=queue.id)
    if attempt_id:
        replayed = yield from attempts.replay(queue, attempt_id, mode, now)
        if replayed is not None:
            claimed.extend(replayed)
            claimed.replayed = True
            return claimed
    if queue.paused:
        return claimed
    if (yield Earliest(EXPIRY_DUE)) <= now:
        yield from expire_active(queue, now)
    if mode == "receive_and_delete":
        yield from _take(queue, claimed, limit, now)
    else:
        until = now + (lease_ms or queue.config.lock_duration_ms)
        if limit == 1:
            yield from _lock_one(queue, claimed, now, until, last=not attempt_id)
        else:
            yield from _lock_ready(queue, claimed, limit, now, until)
    if claimed and attempt_id:
        yield from attempts.record(queue, attempt_id, mode, claimed, now)
    if claimed.more:
        yield Ready(queue.id, 1)
    return claimed


def _lock_one(queue: Queue, claimed: Claimed, now: int, until: int, *, last: bool) -> Steps[None]:
    claim = Statement(CLAIM_ONE, (until, secrets.token_hex(16), queue.id, now))
    found: list[Row] = yield Last(claim) if last else claim
    if found:
        claimed.more = bool(found[0][-1])
        claimed.append(rows.message(found[0]))
        yield Due(LOCK_DUE, until)
        yield from _count(queue, claimed)


def _lock_ready(queue: Queue, claimed: Claimed, limit: int, now: int, until: int) -> Steps[None]:
    ready = yield Statement(SELECT_READY, (queue.id, now, limit + 1))
    within = _within_budget([row[1] for row in ready[:limit]])
    claimed.more = within < len(ready)
    found = yield from _lock([row[0] for row in ready[:within]], until)
    yield from _delivered(queue, claimed, found, until)


def _lock(seqs: Sequence[int], until: int) -> Steps[list[Row]]:
    if not seqs:
        return []
    yield Many(LOCK, [(until, secrets.token_hex(16), seq) for seq in seqs])
    found: list[Row] = yield Statement(SELECT_BY_SEQ, (json.dumps(seqs),))
    return found


def _delivered(queue: Queue, claimed: Claimed, found: list[Row], until: int) -> Steps[None]:
    if found:
        found.sort(key=rows.claim_order)
        claimed.extend(map(rows.message, found))
        yield Due(LOCK_DUE, until)
        yield from _count(queue, claimed)


def _count(queue: Queue, delivered: Sequence[MessageData]) -> Steps[None]:
    yield Event("delivered", queue.id, len(delivered))
    again = sum([message.delivery_count > 1 for message in delivered])
    if again:
        yield Event("redelivered", queue.id, again)


def _take(queue: Queue, taken: Claimed, limit: int, now: int) -> Steps[None]:
    """Receive-and-delete: take, promote, take again, so that a batch may hold several
    messages of one line, in order."""
    budget = RESPONSE_BODY_BYTES
    while True:
        ready = yield Statement(SELECT_READY, (queue.id, now, limit + 1 - len(taken)))
        room = limit - len(taken) if budget > 0 else 0
        chosen = _up_to_first_lined(ready[:room])
        chosen = chosen[: _within_budget([row[1] for row in chosen], budget)]
        if not chosen:
            taken.more = bool(ready)
            break
        budget -= sum(row[1] for row in chosen)
        taken.extend((yield from _delete(queue, chosen)))
    if taken:
        yield from _count(queue, taken)
        yield Event("receive_deleted", queue.id, len(taken))


def _up_to_first_lined(ready: list[Row]) -> list[Row]:
    """Up to the first message that stands in a line: its follower may come next."""
    for index, row in enumerate(ready):
        if row[2] is not None:
            return ready[: index + 1]
    return ready


def _delete(queue: Queue, ready: list[Row]) -> Steps[list[MessageData]]:
    seqs = json.dumps([row[0] for row in ready])
    found = yield Statement(SELECT_BY_SEQ, (seqs,))
    yield Statement(DELETE_BY_SEQ, (seqs,))
    for _, _, line, payload_id in ready:
        yield from content.drop(payload_id)
        yield from lines.leave(queue.id, line, 1)
    messages = [rows.message(row) for row in sorted(found, key=rows.claim_order)]
    for message in messages:
        message.delivery_count += 1
    return messages


def _within_budget(sizes: Sequence[int], budget: int = RESPONSE_BODY_BYTES) -> int:
    """How many messages fit into the answer; the one that crosses the line still does."""
    total = 0
    for count, size in enumerate(sizes):
        if total >= budget:
            return count
        total += size
    return len(sizes)


@operation(settles=True)
def give_back(queue_name: str, held: Sequence[Lease], attempt_id: str = "") -> Steps[int]:
    """Release claims whose receiver is gone; answers how many were still held."""
    queue = yield from resolve_queue(queue_name)
    if queue is None:
        return 0
    now: int = yield NOW
    released = yield from leases.release(queue, held, now)
    if attempt_id:
        yield from attempts.forget(queue, attempt_id)
    return released


@operation()
def receive_deferred(queue_name: str, seqs: Sequence[int]) -> Steps[Claimed]:
    """Lock deferred messages in the order asked for; numbers that are not deferred here are
    skipped. Stops at 32 MiB of bodies and then says `truncated`. Raises NotFound,
    InvalidArgument above 256 numbers.
    """
    if len(seqs) > MAX_DEFERRED_BATCH:
        raise InvalidArgument(
            f"seq_numbers must be at most {MAX_DEFERRED_BATCH} numbers, got {len(seqs)}"
        )
    queue = yield from existing_queue(queue_name)
    now: int = yield NOW
    asked = list(dict.fromkeys(seqs))
    found = yield Statement(SELECT_DEFERRED, (json.dumps(asked), queue.id))
    sizes = {row[0]: row[1] for row in found}
    deferred = [seq for seq in asked if seq in sizes]
    within = _within_budget([sizes[seq] for seq in deferred])
    claimed = Claimed(queue_id=queue.id)
    until = now + queue.config.lock_duration_ms
    locked = yield from _lock(deferred[:within], until)
    yield from _delivered(queue, claimed, locked, until)
    place = {seq: index for index, seq in enumerate(deferred)}
    claimed.sort(key=lambda message: place[message.seq_number])
    claimed.truncated = within < len(deferred)
    return claimed

"""The model of receive: upstream's own rule, looked up afresh for every message."""

from __future__ import annotations

from typing import Any

from .sweeping import expire_row
from .world import Queue, Refused, Row, World

ATTEMPT_MS = 5 * 60 * 1000
MAX_DEFERRED = 256


def same_line(queue: Queue, one: Row, other: Row) -> bool:
    if queue.ordering_mode == "strict_fifo":
        return True
    return bool(one.group) and one.group == other.group


def is_blocked(queue: Queue, row: Row) -> bool:
    """Upstream: an earlier locked, deferred or scheduled message of the line blocks; an
    earlier active one only sorts first. Once it may sort later, it blocks as well."""
    earlier = [
        other for other in queue.rows if other.seq < row.seq and same_line(queue, other, row)
    ]
    blocking = ["locked", "deferred", "scheduled"]
    if _sorts_otherwise(queue):
        blocking.append("active")
    return any(other.state in blocking for other in earlier)


def _sorts_otherwise(queue: Queue) -> bool:
    """Whether claims go by anything but the sequence number. Priorities mean nothing in a
    strict queue, which is to say that earlier active messages block."""
    return len({(row.priority, row.sort_at) for row in queue.of("active")}) > 1


def ready(queue: Queue) -> set[int]:
    """Active messages that nothing earlier in their line holds up, whatever sorts first."""
    return {
        row.seq
        for row in queue.of("active")
        if not any(
            other.seq < row.seq and other.state != "dead_lettered" and same_line(queue, other, row)
            for other in queue.rows
        )
    }


def next_claimable(world: World, queue: Queue) -> Row | None:
    found = [
        row
        for row in queue.of("active")
        if not (0 < row.expires_at <= world.now) and not is_blocked(queue, row)
    ]
    return min(found, key=lambda row: (-row.priority, row.sort_at, row.seq), default=None)


def claim(
    world: World,
    name: str,
    limit: int,
    mode: str,
    attempt_id: str,
    lease_ms: int,
    tokens: list[str],
) -> list[dict[str, Any]]:
    """One message after the other. `tokens` are the ones that the engine has made."""
    queue = world.queue(name)
    recorded = world.attempts.get((queue.id, attempt_id)) if attempt_id else None
    if recorded and recorded[2] > world.now:
        return _replay(world, queue, mode, recorded)
    if queue.paused:
        return []
    for row in queue.of("active"):
        expire_row(world, queue, row)
    claimed: list[dict[str, Any]] = []
    size = 0
    while len(claimed) < limit and size < world.answer_bytes:
        row = next_claimable(world, queue)
        if row is None:
            break
        size += len(row.body)
        if mode == "receive_and_delete":
            row.delivery_count += 1
            queue.rows.remove(row)
        else:
            until = world.now + (lease_ms or queue.lock_duration_ms)
            _lock(world, row, until, tokens, len(claimed))
        claimed.append(row.received())
    if claimed and attempt_id:
        lifetime = max(queue.lock_duration_ms, ATTEMPT_MS)
        world.attempts[queue.id, attempt_id] = (mode, claimed, world.now + lifetime)
    return claimed


def _lock(world: World, row: Row, until: int, tokens: list[str], index: int) -> None:
    row.state = "locked"
    row.locked_until = until
    row.token = tokens[index] if index < len(tokens) else "the engine made no token"
    row.delivery_count += 1
    assert row.token not in world.tokens, "a token was made twice"
    world.tokens.add(row.token)


def _replay(
    world: World, queue: Queue, mode: str, recorded: tuple[str, list[Any], int]
) -> list[dict[str, Any]]:
    if mode != recorded[0]:
        raise Refused("InvalidArgument")
    if mode == "receive_and_delete":
        return recorded[1]
    held = [(queue.row(claim["seq_number"]), claim["lock_token"]) for claim in recorded[1]]
    return [row.received() for row, token in held if row is not None and holds(world, row, token)]


def holds(world: World, row: Row | None, token: str) -> bool:
    """Whether the token holds a live lease: at its deadline it has already expired."""
    return (
        row is not None
        and row.state == "locked"
        and row.token == token
        and row.locked_until > world.now
    )


def receive_deferred(
    world: World, name: str, seqs: list[int], tokens: list[str]
) -> list[dict[str, Any]]:
    queue = world.queue(name)
    claimed: list[dict[str, Any]] = []
    size = 0
    for seq in seqs:
        row = queue.row(seq)
        if row is not None and row.state == "deferred" and size < world.answer_bytes:
            until = world.now + queue.lock_duration_ms
            _lock(world, row, until, tokens, len(claimed))
            claimed.append(row.received())
            size += len(row.body)
    return claimed


def release(row: Row) -> None:
    """The delivery does not count; the place in line and the failures stay."""
    row.unlock("active")
    row.delivery_count -= 1


def give_back(world: World, name: str, leases: list[tuple[int, str]], attempt_id: str) -> int:
    """What a receiver that is gone held: as if it had not been delivered."""
    queue = world.queues.get(name)
    if queue is None:
        return 0
    released = 0
    for seq, token in leases:
        row = queue.row(seq)
        if row is not None and holds(world, row, token):
            release(row)
            released += 1
    if attempt_id:
        world.attempts.pop((queue.id, attempt_id), None)
    return released

"""The model of what happens without a consumer: failures, sweeps, dead letters, recovery."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from .world import LIVE, Queue, Refused, Row, World


def dead_letter(row: Row, reason: str) -> None:
    row.unlock("dead_lettered")
    row.reason = reason


def fail(
    world: World, queue: Queue, row: Row, delay_ms: int, visible_at: int, *, counts: bool = True
) -> None:
    """A delivery that was given back, or whose lease ran out or lost its owner."""
    delay = delay_ms or retry_delay(queue, row)
    row.failure_count += counts
    if queue.max_counts == "deliveries":
        full = row.delivery_count >= queue.max_delivery_count
    else:
        full = counts and row.failure_count >= queue.max_delivery_count
    if full:
        dead_letter(row, "MaxDeliveryCountExceeded")
        return
    if delay:
        row.unlock("scheduled")
        row.visible_at = world.now + delay
        row.sort_at = queue.sort_at(row.visible_at)
    else:
        row.unlock("active")
        row.visible_at = visible_at
        row.sort_at = queue.sort_at(world.now)


def retry_delay(queue: Queue, row: Row) -> int:
    """initial x multiplier^(n-1), capped; spread by (FNV-1a of "id:n" mod 1000001) / 1000000
    into 1 - jitter .. 1 + jitter, and capped again."""
    if not queue.retry_initial_delay_ms:
        return 0
    cap = queue.retry_max_delay_ms or 2**62
    n = row.failure_count + 1
    delay = min(queue.retry_initial_delay_ms * queue.retry_multiplier ** (n - 1), cap)
    hashed = 14695981039346656037
    for byte in f"{row.message_id or row.seq}:{n}".encode():
        hashed = (hashed ^ byte) * 1099511628211 % 2**64
    u = hashed % 1_000_001 / 1_000_000
    return int(min(delay * (1 + (2 * u - 1) * queue.retry_jitter), cap))


def expire_row(world: World, queue: Queue, row: Row) -> None:
    if not 0 < row.expires_at <= world.now:
        return
    if queue.dead_letter_on_expire:
        dead_letter(row, "TTLExpired")
    else:
        queue.rows.remove(row)


def maintain(world: World) -> None:
    """Every pass once, in the documented order."""
    queues = list(world.queues.values())
    for queue in queues:
        for row in queue.of("locked"):
            if row.locked_until <= world.now:
                fail(world, queue, row, 0, row.visible_at)
    for queue in queues:
        for row in queue.of("scheduled"):
            if row.visible_at <= world.now:
                row.state = "active"
    for queue in queues:
        for row in queue.of(*LIVE):
            expire_row(world, queue, row)
    _forget(world)
    for queue in queues:
        _bound_dead_letters(world, queue)
        oldest = world.now - queue.retain_completed_ms
        queue.finished = {seq: done for seq, done in queue.finished.items() if done[1] > oldest}


def _forget(world: World) -> None:
    now = world.now
    widest = max((queue.dedup_window_ms for queue in world.queues.values()), default=0)
    world.dedup = {key: seen for key, seen in world.dedup.items() if seen[2] > now - widest}
    world.receipts = {key: until for key, until in world.receipts.items() if until > now}
    world.attempts = {key: made for key, made in world.attempts.items() if made[2] > now}


def _bound_dead_letters(world: World, queue: Queue) -> None:
    """By age, by count, by bytes; the oldest go. A dead letter that is young keeps later ones,
    which are younger unless the clock was set back; upstream looks at each."""
    max_age, max_count, max_bytes = (
        _bound(queue.settings[name], world.inherited.get(name, 0))
        for name in ("dlq_max_age_ms", "dlq_max_count", "dlq_max_bytes")
    )
    if max_age:
        for row in takewhile(
            lambda row: row.enqueued_at < world.now - max_age, _oldest_first(queue)
        ):
            queue.rows.remove(row)
    total, full = 0, False
    for place, row in enumerate(_oldest_first(queue)[::-1]):
        total += len(row.body)
        full = full or place >= max_count > 0 or total > max_bytes > 0
        if full:
            queue.rows.remove(row)


def _bound(own: int, inherited: int) -> int:
    """A queue's own bound, none if it is negative, else the inherited one; 0 is none."""
    return max(own or inherited, 0)


def _oldest_first(queue: Queue) -> list[Row]:
    return sorted(queue.of("dead_lettered"), key=lambda row: row.seq)


def recover(world: World) -> None:
    """On open every lock is orphaned, but in queues that keep leases over a restart."""
    for queue in world.queues.values():
        for row in queue.of("locked"):
            if not queue.keep_leases:
                fail(world, queue, row, 0, row.visible_at)


def redrive(world: World, name: str, target: str, limit: int, older_than_ms: int) -> int:
    _check(limit)
    queue = world.queue(name)
    into = world.queue(target) if target and target != name else None
    meant = _meant(world, queue, limit, older_than_ms)
    for row in meant:
        if into is None:
            _revive(world, queue, row)
        else:
            queue.rows.remove(row)
            into.rows.append(_copied(world, into, row))
    return len(meant)


def _revive(world: World, queue: Queue, row: Row) -> None:
    row.state = "active"
    row.visible_at = 0
    row.sort_at = queue.sort_at(world.now)
    row.delivery_count = row.failure_count = 0
    row.reason = row.description = ""
    if 0 < row.expires_at <= world.now:
        row.expires_at = world.now + row.ttl_ms


def _copied(world: World, into: Queue, row: Row) -> Row:
    """A new message with the same content, and no deadline."""
    copy = replace(row, seq=world.take_seq(), enqueued_at=world.now, expires_at=0, ttl_ms=0)
    _revive(world, into, copy)
    copy.visible_at = world.now
    return copy


def purge(world: World, name: str, limit: int, older_than_ms: int) -> int:
    _check(limit)
    queue = world.queue(name)
    meant = _meant(world, queue, limit, older_than_ms)
    for row in meant:
        queue.rows.remove(row)
    return len(meant)


def _check(limit: int) -> None:
    if limit < 0:
        raise Refused("InvalidArgument")


def _meant(world: World, queue: Queue, limit: int, older_than_ms: int) -> list[Row]:
    dead = _oldest_first(queue)
    if older_than_ms:
        dead = [row for row in dead if row.enqueued_at < world.now - older_than_ms]
    return dead[: limit or None]

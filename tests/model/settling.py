"""The model of settlement: a live lease, or a receipt for the very same request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import claiming
from .claiming import holds
from .sending import finish
from .sweeping import dead_letter, fail
from .world import Queue, Refused, Row, World

RECEIPT_MS = 30 * 60 * 1000

Lease = tuple[int, str]


def complete(world: World, name: str, seq: int, token: str) -> None:
    _settle(
        world, name, seq, token, ("complete",), lambda q, row: finish(world, q, row, "completed")
    )


def abandon(world: World, name: str, seq: int, token: str, delay_ms: int) -> None:
    def effect(queue: Queue, row: Row) -> None:
        fail(world, queue, row, delay_ms, visible_at=world.now)

    _settle(world, name, seq, token, ("abandon", delay_ms), effect)


def snooze(world: World, name: str, seq: int, token: str, delay_ms: int) -> None:
    """An abandon of which the failure is not counted, nor compared with the maximum."""

    def effect(queue: Queue, row: Row) -> None:
        fail(world, queue, row, delay_ms, visible_at=world.now, counts=False)

    _settle(world, name, seq, token, ("snooze", delay_ms), effect)


def release(world: World, name: str, seq: int, token: str) -> None:
    _settle(world, name, seq, token, ("release",), lambda _, row: claiming.release(row))


def reject(world: World, name: str, seq: int, token: str, reason: str, description: str) -> None:
    reason = reason or "AppRequested"

    def effect(queue: Queue, row: Row) -> None:
        row.description = description
        dead_letter(row, reason)

    _settle(world, name, seq, token, ("reject", reason, description), effect)


def defer(world: World, name: str, seq: int, token: str) -> None:
    _settle(world, name, seq, token, ("defer",), lambda _, row: row.unlock("deferred"))


def _settle(
    world: World,
    name: str,
    seq: int,
    token: str,
    request: tuple[Any, ...],
    effect: Callable[[Queue, Row], None],
) -> None:
    if not name:
        raise Refused("InvalidArgument")
    queue = world.queues.get(name)
    if queue is None or not token:
        raise Refused("LockLost")
    key = (queue.id, seq, token, *request)
    row = queue.row(seq)
    if row is not None and holds(world, row, token):
        effect(queue, row)
        world.receipts[key] = world.now + RECEIPT_MS
    elif world.receipts.get(key, 0) <= world.now:
        raise Refused("LockLost")


def complete_batch(world: World, name: str, leases: list[Lease]) -> list[tuple[int, bool]]:
    """What is held is removed first; only receipts from before the call count after that."""
    queue = world.queues.get(name)
    if queue is None:
        return [(seq, False) for seq, _ in leases]
    before = {key for key, until in world.receipts.items() if until > world.now}
    done: set[Lease] = set()
    for seq, token in leases:
        row = queue.row(seq)
        if row is not None and token and holds(world, row, token):
            finish(world, queue, row, "completed")
            world.receipts[queue.id, seq, token, "complete"] = world.now + RECEIPT_MS
            done.add((seq, token))
    return [
        (seq, (seq, token) in done or (queue.id, seq, token, "complete") in before)
        for seq, token in leases
    ]


def renew(world: World, name: str, seq: int, token: str) -> tuple[int, bool, int, int]:
    queue = world.queue(name)
    result = _renew_one(world, queue, seq, token)
    if not result[1]:
        raise Refused("LockLost")
    return result


def renew_batch(world: World, name: str, leases: list[Lease]) -> list[tuple[int, bool, int, int]]:
    if not any(token for _, token in leases):
        return [(seq, False, 0, 0) for seq, _ in leases]
    queue = world.queue(name)
    return [_renew_one(world, queue, seq, token) for seq, token in leases]


def _renew_one(world: World, queue: Queue, seq: int, token: str) -> tuple[int, bool, int, int]:
    row = queue.row(seq)
    if row is None or not holds(world, row, token):
        return seq, False, 0, 0
    row.locked_until = max(row.locked_until, world.now + queue.lock_duration_ms)
    return seq, True, row.locked_until, row.locked_until - world.now

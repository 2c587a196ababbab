"""Settling locked messages: every new effect needs the current token and a live lease.

Equality with the deadline is already expired (source: mqlite). What was already settled by
the same request succeeds again; see `receipts`.
"""

from __future__ import annotations

from typing import Final

from mqlite.engine import content, failing, leases, leaving, lines, receipts
from mqlite.engine.catalog import Queue, Topic, existing_queue
from mqlite.engine.lines import Place
from mqlite.engine.names import check_present
from mqlite.engine.steps import (
    LOCK_DUE,
    NOW,
    Due,
    Event,
    Resolve,
    Row,
    Statement,
    Steps,
    operation,
)
from mqlite.errors import LockLost
from mqlite.model import RenewResult

_FENCE: Final = """
    seq = ? AND queue_id = ? AND state = 'locked' AND lock_token = ? AND locked_until > ?
"""
COMPLETE: Final = f"DELETE FROM mqlite_messages WHERE {_FENCE} RETURNING line, head, payload_id"
SELECT_HELD: Final = f"SELECT {failing.COLUMNS} FROM mqlite_messages WHERE {_FENCE}"
DEFER: Final = """
    UPDATE mqlite_messages SET state = 'deferred', lock_token = NULL, locked_until = 0
     WHERE seq = ?
"""
RENEW: Final = f"""
    UPDATE mqlite_messages SET locked_until = max(locked_until, ?) WHERE {_FENCE}
    RETURNING locked_until
"""


@operation(settles=True)
def complete(queue_name: str, seq: int, token: str) -> Steps[None]:
    """Remove the message. Raises LockLost."""
    queue = yield from _held_queue(queue_name, seq, token)
    now: int = yield NOW
    request = receipts.digest(queue.id, seq, token, "completed")
    if queue.config.retain_completed_ms:
        row = yield from _held(queue, seq, token, now, request)
        if row is None:
            return
        yield from leaving.finish(queue, [Place(*row[:4])], "completed")
    else:
        removed = yield Statement(COMPLETE, (seq, queue.id, token, now))
        if not removed:
            yield from _require_receipt(seq, request, now)
            return
        line, head, payload_id = removed[0]
        if payload_id is not None:
            yield from content.drop(payload_id)
        if line is not None:
            yield from lines.leave(queue.id, line, head)
    yield Event("completed", queue.id)
    yield receipts.receipt(seq, request, now)


@operation(settles=True)
def abandon(
    queue_name: str, seq: int, token: str, delay_ms: int = 0, snooze: bool = False
) -> Steps[None]:
    """Give the message back; a positive `delay_ms` parks it, holding its place in line. At
    the queue's limit it is dead-lettered whatever the delay. A `snooze` counts no failure.
    Raises LockLost."""
    queue = yield from _held_queue(queue_name, seq, token)
    now: int = yield NOW
    outcome = "snoozed" if snooze else "abandoned"
    request = receipts.digest(queue.id, seq, token, outcome, str(delay_ms))
    row = yield from _held(queue, seq, token, now, request)
    if row is None:
        return
    yield from failing.fail(queue, row, now, delay_ms=delay_ms, visible_at=now, snooze=snooze)
    yield Event(outcome, queue.id)
    yield receipts.receipt(seq, request, now)


@operation(settles=True)
def release(queue_name: str, seq: int, token: str) -> Steps[None]:
    """Give the message back as if it had not been delivered. Raises LockLost."""
    queue = yield from _held_queue(queue_name, seq, token)
    now: int = yield NOW
    request = receipts.digest(queue.id, seq, token, "released")
    if not (yield from leases.release(queue, [(seq, token)], now)):
        yield from _require_receipt(seq, request, now)
        return
    yield receipts.receipt(seq, request, now)


@operation(settles=True)
def reject(
    queue_name: str, seq: int, token: str, reason: str = "", description: str = ""
) -> Steps[None]:
    """Dead-letter the message; an empty reason is the same request as AppRequested. Raises
    LockLost."""
    reason = reason or leaving.APP_REQUESTED
    queue = yield from _held_queue(queue_name, seq, token)
    now: int = yield NOW
    request = receipts.digest(queue.id, seq, token, "dead_lettered", reason, description)
    row = yield from _held(queue, seq, token, now, request)
    if row is None:
        return
    yield from leaving.dead_letter(
        queue.id, [Place(*row[:4])], reason, description=description or None
    )
    yield Event("rejected", queue.id)
    yield receipts.receipt(seq, request, now)


@operation(settles=True)
def defer(queue_name: str, seq: int, token: str) -> Steps[None]:
    """Set the message aside; it keeps its place in line. Raises LockLost."""
    queue = yield from _held_queue(queue_name, seq, token)
    now: int = yield NOW
    request = receipts.digest(queue.id, seq, token, "deferred")
    row = yield from _held(queue, seq, token, now, request)
    if row is None:
        return
    yield Statement(DEFER, (seq,))
    yield Event("deferred", queue.id)
    yield receipts.receipt(seq, request, now)


class Renewal(RenewResult, frozen=True):
    """A renewed lease, as long as it lasts."""

    def recheck(self, now: int) -> Renewal:
        """With what remains of the lease. Raises LockLost where nothing does."""
        if self.locked_until_ms <= now:
            raise lock_lost(self.seq_number)
        return Renewal(self.seq_number, True, self.locked_until_ms, self.locked_until_ms - now)


@operation(settles=True)
def renew(queue_name: str, seq: int, token: str) -> Steps[Renewal]:
    """Extend a live lease by the queue's lock duration, never shortening it. Raises NotFound,
    LockLost."""
    queue = yield from existing_queue(queue_name)
    if not token:
        raise lock_lost(seq)
    now: int = yield NOW
    until = now + queue.config.lock_duration_ms
    rows = yield Statement(RENEW, (until, seq, queue.id, token, now))
    if not rows:
        raise lock_lost(seq)
    yield Due(LOCK_DUE, rows[0][0])
    return Renewal(seq, True, rows[0][0])


def lock_lost(seq: int) -> LockLost:
    return LockLost(f"the lock token does not hold a live lease on message {seq}")


def _held_queue(queue_name: str, seq: int, token: str) -> Steps[Queue]:
    """The queue of a settlement. Whatever cannot hold a lease is a lost lock."""
    check_present(queue_name)
    found: Queue | Topic | None = (yield Resolve(queue_name)) if token else None
    if not isinstance(found, Queue):
        raise lock_lost(seq)
    return found


def _held(queue: Queue, seq: int, token: str, now: int, request: bytes) -> Steps[Row | None]:
    """The locked message; None where the same request has already been carried out."""
    rows: list[Row] = yield Statement(SELECT_HELD, (seq, queue.id, token, now))
    if rows:
        return rows[0]
    yield from _require_receipt(seq, request, now)
    return None


def _require_receipt(seq: int, request: bytes, now: int) -> Steps[None]:
    if not (yield from receipts.exists(seq, request, now)):
        raise lock_lost(seq)

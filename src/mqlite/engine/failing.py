"""What becomes of a delivery that failed: another try, now or later, or the dead letters."""

from __future__ import annotations

from typing import Final

from mqlite.durations import MAX_MS
from mqlite.engine import leaving, retry
from mqlite.engine.catalog import Queue
from mqlite.engine.lines import Place
from mqlite.engine.steps import SCHEDULE_DUE, Due, Ready, Row, Statement, Steps
from mqlite.errors import InvalidArgument

COLUMNS: Final = "seq, line, head, payload_id, delivery_count, failure_count, message_id"

RETRY_LATER: Final = """
    UPDATE mqlite_messages
       SET state = 'scheduled', visible_at = ?, sort_at = ?, failure_count = failure_count + ?,
           lock_token = NULL, locked_until = 0
     WHERE seq = ?
"""
RETRY_NOW: Final = """
    UPDATE mqlite_messages
       SET state = 'active', visible_at = coalesce(?, visible_at), sort_at = ?,
           failure_count = failure_count + ?, lock_token = NULL, locked_until = 0
     WHERE seq = ?
"""


def fail(
    queue: Queue,
    row: Row,
    now: int,
    *,
    delay_ms: int = 0,
    visible_at: int | None = None,
    snooze: bool = False,
) -> Steps[None]:
    """Requeue or dead-letter a locked message, given as a row of `COLUMNS`.

    A positive `delay_ms` parks it; without one the queue's retry policy decides.
    `visible_at` is what an immediate retry is set to, None keeps what it was. A `snooze` is
    no failure: only its delivery can be one too many.
    """
    seq, line, head, payload_id, deliveries, failures, message_id = row
    added = 0 if snooze else 1
    if _was_last(queue, deliveries, failures, added):
        place = Place(seq, line, head, payload_id)
        yield from leaving.dead_letter(queue.id, [place], leaving.MAX_DELIVERIES, failures=added)
        return
    delay = (
        delay_ms
        if delay_ms > 0
        else retry.delay_ms(queue.config, message_id or str(seq), failures + 1)
    )
    if delay > 0:
        due = now + delay
        if due > MAX_MS:
            raise InvalidArgument("delay_ms ends beyond the largest time that can be stored")
        yield Statement(RETRY_LATER, (due, queue.sort_at(due), added, seq))
        yield Due(SCHEDULE_DUE, due)
        return
    yield Statement(RETRY_NOW, (visible_at, queue.sort_at(now), added, seq))
    if head:
        yield Ready(queue.id, 1)


def _was_last(queue: Queue, deliveries: int, failures: int, added: int) -> bool:
    """Whether the message has reached the maximum of what its queue counts."""
    maximum = queue.config.max_delivery_count
    if queue.config.max_counts == "deliveries":
        return deliveries >= maximum
    return bool(added) and failures + added >= maximum

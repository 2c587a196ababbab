"""How a message leaves the live queue: dead-lettered, or removed for good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from mqlite.engine import content, lines
from mqlite.engine.catalog import Queue
from mqlite.engine.lines import Place
from mqlite.engine.steps import NOW, Event, Many, Steps

MAX_DELIVERIES: Final = "MaxDeliveryCountExceeded"
TTL_EXPIRED: Final = "TTLExpired"
APP_REQUESTED: Final = "AppRequested"

DEAD_LETTER: Final = """
    UPDATE mqlite_messages
       SET state = 'dead_lettered', line = NULL, head = 1, lock_token = NULL, locked_until = 0,
           failure_count = failure_count + ?, dead_letter_reason = ?,
           dead_letter_description = coalesce(?, dead_letter_description)
     WHERE seq = ?
"""
RETAIN: Final = """
    INSERT INTO mqlite_finished (
        seq, queue_id, outcome, finished_at, lock_token, delivery_count, failure_count, enqueued_at,
        priority, group_id, message_id, correlation_id, reply_to, content_type, subject, body_size,
        payload_id, properties, body)
    SELECT seq, queue_id, ?, ?, lock_token, delivery_count, failure_count, enqueued_at,
           priority, group_id, message_id, correlation_id, reply_to, content_type, subject,
           body_size, payload_id, properties, body
      FROM mqlite_messages WHERE seq = ?
"""
DELETE: Final = "DELETE FROM mqlite_messages WHERE seq = ?"


def dead_letter(
    queue_id: int,
    places: Sequence[Place],
    reason: str,
    *,
    description: str | None = None,
    failures: int = 0,
) -> Steps[None]:
    """Move live messages of one queue to the dead letters, adding to their failure count."""
    yield Many(DEAD_LETTER, [(failures, reason, description, place.seq) for place in places])
    yield Event("dead_lettered", queue_id, len(places))
    for place in places:
        yield from lines.leave(queue_id, place.line, place.head)


def remove(queue_id: int, places: Sequence[Place]) -> Steps[None]:
    """Delete messages of one queue, and their payloads where nothing else refers to them."""
    yield Many(DELETE, [(place.seq,) for place in places])
    for place in places:
        yield from content.drop(place.payload_id)
        yield from lines.leave(queue_id, place.line, place.head)


def finish(
    queue: Queue, places: Sequence[Place], outcome: Literal["completed", "canceled"]
) -> Steps[None]:
    """Remove messages that are done with; a queue that retains them keeps them apart, where
    nothing of the live queue looks."""
    if not queue.config.retain_completed_ms:
        yield from remove(queue.id, places)
        return
    now: int = yield NOW
    yield Many(RETAIN, [(outcome, now, place.seq) for place in places])
    yield Many(DELETE, [(place.seq,) for place in places])
    for place in places:
        yield from lines.leave(queue.id, place.line, place.head)

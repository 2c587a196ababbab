"""Leases that ran out, leases whose owner is gone, and leases released unused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from mqlite.engine import failing
from mqlite.engine.catalog import Queue
from mqlite.engine.steps import (
    LOCK_DUE,
    NOW,
    Due,
    Event,
    QueueById,
    Ready,
    Row,
    Statement,
    Steps,
    operation,
)
from mqlite.model import Lease

CHUNK: Final = 500

SELECT_EXPIRED: Final = f"""
    SELECT queue_id, {failing.COLUMNS} FROM mqlite_messages
     WHERE state = 'locked' AND locked_until <= ? ORDER BY locked_until LIMIT ?
"""
NEXT_EXPIRY: Final = """
    SELECT locked_until FROM mqlite_messages WHERE state = 'locked' ORDER BY locked_until LIMIT 1
"""
SELECT_ORPHANED: Final = f"""
    SELECT m.queue_id, {", ".join("m." + column for column in failing.COLUMNS.split(", "))}
      FROM mqlite_messages AS m JOIN mqlite_queues AS q ON q.id = m.queue_id
     WHERE m.state = 'locked' AND NOT q.keep_leases LIMIT ?
"""
RELEASE: Final = """
    UPDATE mqlite_messages
       SET state = 'active', lock_token = NULL, locked_until = 0,
           delivery_count = max(delivery_count - 1, 0)
     WHERE seq = ? AND queue_id = ? AND state = 'locked' AND lock_token = ? AND locked_until > ?
    RETURNING head
"""


@operation()
def expire(limit: int = CHUNK) -> Steps[int]:
    """Requeue or dead-letter messages whose lease has run out, whoever held it; answers how
    many."""
    now: int = yield NOW
    rows: list[Row] = yield Statement(SELECT_EXPIRED, (now, limit))
    yield from _reclaim(rows, now, "lock_expired")
    if len(rows) < limit:
        following = yield Statement(NEXT_EXPIRY)
        if following:
            yield Due(LOCK_DUE, following[0][0])
    return len(rows)


@operation()
def recover(limit: int = CHUNK) -> Steps[int]:
    """On open: reclaim the locks that a previous owner left behind, by the same rule, except
    in queues that keep leases; answers how many."""
    now: int = yield NOW
    rows: list[Row] = yield Statement(SELECT_ORPHANED, (limit,))
    yield from _reclaim(rows, now, "recovered")
    return len(rows)


def _reclaim(rows: list[Row], now: int, event: str) -> Steps[None]:
    by_queue: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_queue[row[0]].append(row[1:])
    for queue_id, held in by_queue.items():
        queue: Queue = yield QueueById(queue_id)
        for row in held:
            yield from failing.fail(queue, row, now)
        yield Event(event, queue_id, len(held))


def release(queue: Queue, leases: Iterable[Lease], now: int) -> Steps[int]:
    """Make the messages of live leases active again, as if they had not been delivered;
    answers how many that were."""
    released = ready = 0
    for seq, token in leases:
        found = yield Statement(RELEASE, (seq, queue.id, token, now))
        released += len(found)
        ready += sum(row[0] for row in found)
    if released:
        yield Event("released", queue.id, released)
    if ready:
        yield Ready(queue.id, ready)
    return released

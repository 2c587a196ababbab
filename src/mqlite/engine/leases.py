"""Leases that ran out, and leases whose owner is gone."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from mqlite.engine import failing
from mqlite.engine.catalog import Queue
from mqlite.engine.steps import (
    LOCK_DUE,
    NOW,
    Due,
    Event,
    QueueById,
    Row,
    Statement,
    Steps,
    operation,
)

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

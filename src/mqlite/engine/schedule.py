"""Scheduled and parked messages that are due."""

from __future__ import annotations

from collections import Counter
from typing import Final

from mqlite.engine.steps import (
    NOW,
    SCHEDULE_DUE,
    Due,
    Event,
    Many,
    Ready,
    Statement,
    Steps,
    operation,
)

CHUNK: Final = 500

SELECT_DUE: Final = """
    SELECT seq, queue_id, head FROM mqlite_messages
     WHERE state = 'scheduled' AND visible_at <= ? ORDER BY visible_at LIMIT ?
"""
NEXT_DUE: Final = """
    SELECT visible_at FROM mqlite_messages WHERE state = 'scheduled' ORDER BY visible_at LIMIT 1
"""
ACTIVATE: Final = "UPDATE mqlite_messages SET state = 'active' WHERE seq = ?"


@operation()
def activate(limit: int = CHUNK) -> Steps[int]:
    """Make due messages active; answers how many."""
    now: int = yield NOW
    rows = yield Statement(SELECT_DUE, (now, limit))
    if rows:
        yield Many(ACTIVATE, [(row[0],) for row in rows])
        for queue_id, count in Counter(row[1] for row in rows).items():
            yield Event("activated", queue_id, count)
        for queue_id, count in Counter(row[1] for row in rows if row[2]).items():
            yield Ready(queue_id, count)
    if len(rows) < limit:
        following = yield Statement(NEXT_DUE)
        if following:
            yield Due(SCHEDULE_DUE, following[0][0])
    return len(rows)

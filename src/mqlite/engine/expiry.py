"""Time to live: expired messages are dead-lettered or discarded, as their queue says."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from mqlite.engine import leaving
from mqlite.engine.catalog import Queue
from mqlite.engine.lines import Place
from mqlite.engine.steps import EXPIRY_DUE, NOW, Due, Event, QueueById, Statement, Steps, operation

CHUNK: Final = 500

SELECT_EXPIRED_ACTIVE: Final = """
    SELECT seq, line, head, payload_id FROM mqlite_messages
     WHERE queue_id = ? AND state = 'active' AND expires_at > 0 AND expires_at <= ?
     ORDER BY expires_at LIMIT ?
"""
SELECT_EXPIRED: Final = """
    SELECT queue_id, seq, line, head, payload_id FROM mqlite_messages
     WHERE expires_at > 0 AND state <> 'dead_lettered' AND expires_at <= ?
     ORDER BY expires_at LIMIT ?
"""
NEXT_EXPIRY: Final = """
    SELECT expires_at FROM mqlite_messages
     WHERE expires_at > 0 AND state <> 'dead_lettered' ORDER BY expires_at LIMIT 1
"""


def expire_active(queue: Queue, now: int) -> Steps[None]:
    """Before a claim: take expired messages out of the queue's active ones, a bounded chunk."""
    rows = yield Statement(SELECT_EXPIRED_ACTIVE, (queue.id, now, CHUNK))
    if rows:
        yield from _retire(queue, [Place(*row) for row in rows])


@operation()
def expire(limit: int = CHUNK) -> Steps[int]:
    """Take expired messages out of every live state, locked ones included (source: mqlite);
    answers how many."""
    now: int = yield NOW
    rows = yield Statement(SELECT_EXPIRED, (now, limit))
    places: dict[int, list[Place]] = defaultdict(list)
    for queue_id, *place in rows:
        places[queue_id].append(Place(*place))
    for queue_id, expired in places.items():
        queue: Queue = yield QueueById(queue_id)
        yield from _retire(queue, expired)
    if len(rows) < limit:
        following = yield Statement(NEXT_EXPIRY)
        if following:
            yield Due(EXPIRY_DUE, following[0][0])
    return len(rows)


def _retire(queue: Queue, places: list[Place]) -> Steps[None]:
    if queue.config.dead_letter_on_expire:
        yield from leaving.dead_letter(queue.id, places, leaving.TTL_EXPIRED)
    else:
        yield from leaving.remove(queue.id, places)
        yield Event("ttl_discarded", queue.id, len(places))

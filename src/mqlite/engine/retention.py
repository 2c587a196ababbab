"""Dead letters within bounds: by age, by number, by bytes; oldest first."""

from __future__ import annotations

from typing import Final, NamedTuple

from mqlite.engine import leaving
from mqlite.engine.catalog import SELECT_QUEUES, Queue, queue_from_row
from mqlite.engine.lines import Place
from mqlite.engine.steps import NOW, Event, Plan, Statement, Steps, operation
from mqlite.integers import MAX_INT64

CHUNK: Final = 1000
CHUNKS_PER_PASS: Final = 100

FIRST_YOUNG: Final = """
    SELECT seq FROM mqlite_messages
     WHERE queue_id = ? AND state = 'dead_lettered' AND enqueued_at >= ? ORDER BY seq LIMIT 1
"""
NTH_NEWEST_DEAD: Final = """
    SELECT seq FROM mqlite_messages
     WHERE queue_id = ? AND state = 'dead_lettered' ORDER BY seq DESC LIMIT 1 OFFSET ?
"""
FIRST_OVER_BYTES: Final = """
    SELECT max(seq) FROM (
        SELECT seq, sum(body_size) OVER (ORDER BY seq DESC) AS total FROM mqlite_messages
         WHERE queue_id = ? AND state = 'dead_lettered')
     WHERE total > ?
"""
SELECT_DEAD_UP_TO: Final = """
    SELECT seq, line, head, payload_id FROM mqlite_messages
     WHERE queue_id = ? AND state = 'dead_lettered' AND seq <= ? ORDER BY seq LIMIT ?
"""


class Bounds(NamedTuple):
    """The engine's bounds, which queues inherit; 0 means unbounded."""

    max_age_ms: int = 0
    max_count: int = 0
    max_bytes: int = 0


def effective(own: int, inherited: int) -> int:
    """A queue's bound: its own if positive, none if negative, else the engine's; 0 is none."""
    return max(own, 0) if own else inherited


def retain(engine: Bounds) -> Plan[None]:
    """One pass over all queues; at most 100 chunks for each queue."""
    queues: list[Queue] = yield all_queues()
    for queue in queues:
        config = queue.config
        bounds = Bounds(
            effective(config.dlq_max_age_ms, engine.max_age_ms),
            effective(config.dlq_max_count, engine.max_count),
            effective(config.dlq_max_bytes, engine.max_bytes),
        )
        if not any(bounds):
            continue
        last: int = yield find_excess(queue, bounds)
        for _ in range(CHUNKS_PER_PASS if last else 0):
            if (yield delete_up_to(queue.id, last)) < CHUNK:
                break


@operation(reads=True)
def all_queues() -> Steps[list[Queue]]:
    rows = yield Statement(SELECT_QUEUES)
    return [queue_from_row(row) for row in rows]


@operation(reads=True)
def find_excess(queue: Queue, bounds: Bounds) -> Steps[int]:
    """The newest dead letter beyond any bound; it and all older ones go. 0: none does."""
    found = [0]
    if bounds.max_age_ms:
        now: int = yield NOW
        rows = yield Statement(FIRST_YOUNG, (queue.id, now - bounds.max_age_ms))
        found.append(rows[0][0] - 1 if rows else MAX_INT64)
    if bounds.max_count:
        rows = yield Statement(NTH_NEWEST_DEAD, (queue.id, bounds.max_count))
        found += [row[0] for row in rows]
    if bounds.max_bytes:
        rows = yield Statement(FIRST_OVER_BYTES, (queue.id, bounds.max_bytes))
        found += [row[0] for row in rows if row[0]]
    return max(found)


@operation()
def delete_up_to(queue_id: int, last: int) -> Steps[int]:
    """Delete a chunk of the oldest dead letters; answers how many."""
    rows = yield Statement(SELECT_DEAD_UP_TO, (queue_id, last, CHUNK))
    if rows:
        yield from leaving.remove(queue_id, [Place(*row) for row in rows])
        yield Event("retention_deleted", queue_id, len(rows))
    return len(rows)

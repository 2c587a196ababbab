"""Looking without touching: peek, counts by state."""

from __future__ import annotations

import json
from typing import Final

from mqlite.engine import rows
from mqlite.engine.catalog import existing_queue, resolve_queue
from mqlite.engine.names import check_present
from mqlite.engine.steps import NOW, Row, Statement, Steps, operation
from mqlite.model import RESPONSE_BODY_BYTES, STATES, MessageData, QueueStats

_SEQ: Final = dict.fromkeys(STATES, "seq") | {"locked": "+seq"}
# Locked rows are indexed by deadline only, which every claim pays for; so few are locked at
# a time that sorting them here is cheaper. The plus keeps the planner off the whole table.
SELECT_SIZES: Final = {
    state: f"""
    SELECT seq, body_size FROM mqlite_messages
     WHERE queue_id = ? AND state = '{state}' AND {seq} >= ? ORDER BY {seq} LIMIT ?
    """
    for state, seq in _SEQ.items()
}
SELECT_MESSAGES: Final = f"""
    SELECT {rows.PEEKED} FROM mqlite_messages
     WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq
"""
COUNT: Final = {
    state: f"SELECT count(*) FROM mqlite_messages WHERE queue_id = ? AND state = '{state}'"
    for state in STATES
}
OLDEST: Final = {
    state: f"""
    SELECT enqueued_at FROM mqlite_messages
     WHERE queue_id = ? AND state = '{state}' ORDER BY {_SEQ[state]} LIMIT 1
    """
    for state in ("active", "locked")
}
COUNT_QUEUES: Final = (
    "SELECT count(*) FROM mqlite_queues WHERE deleted_at IS NULL AND kind = 'queue'"
)
COUNT_SUBSCRIPTIONS: Final = "SELECT count(*) FROM mqlite_subscriptions"


@operation(reads=True)
def peek(queue_name: str, from_seq: int, state: str, limit: int) -> Steps[list[MessageData]]:
    """Up to `limit` messages from a sequence number on, of one state or all ('').

    Stops at 32 MiB of bodies, after at least one message. An unknown queue, and an unknown
    state, have none.
    """
    check_present(queue_name)
    queue = yield from resolve_queue(queue_name)
    if queue is None:
        return []
    found: list[Row] = []
    for name in STATES if not state else (state,):
        if name in SELECT_SIZES:
            found += yield Statement(SELECT_SIZES[name], (queue.id, from_seq, limit))
    seqs = _page(sorted(found), limit)
    messages = yield Statement(SELECT_MESSAGES, (json.dumps(seqs),))
    return [rows.message(row) for row in messages]


def _page(found: list[Row], limit: int) -> list[int]:
    seqs: list[int] = []
    total = 0
    for seq, size in found[:limit]:
        if total >= RESPONSE_BODY_BYTES:
            break
        total += size
        seqs.append(seq)
    return seqs


@operation(reads=True)
def stats(queue_name: str) -> Steps[QueueStats]:
    """Counts by state, and the age of the oldest active or locked message, which is the one
    with the smallest sequence number. Raises NotFound."""
    queue = yield from existing_queue(queue_name)
    now: int = yield NOW
    counts: dict[str, int] = {}
    for state in STATES:
        counts[state] = (yield Statement(COUNT[state], (queue.id,)))[0][0]
    oldest: list[int] = []
    for sql in OLDEST.values():
        oldest += [row[0] for row in (yield Statement(sql, (queue.id,)))]
    age = max(now - min(oldest), 0) if oldest else 0
    return QueueStats(
        queue=queue_name, total=sum(counts.values()), oldest_message_age_ms=age, **counts
    )


@operation(reads=True)
def counts() -> Steps[tuple[int, int]]:
    """How many plain queues and how many subscriptions there are."""
    queues = yield Statement(COUNT_QUEUES)
    subscriptions = yield Statement(COUNT_SUBSCRIPTIONS)
    return queues[0][0], subscriptions[0][0]

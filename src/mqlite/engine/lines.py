"""Lines: the order in which messages may be claimed, kept as data.

Grouped messages stand in the line of their group, all messages of a strict queue in one
line. Only the head of a line, its smallest sequence number in whatever live state, can be
claimed; so a claim never looks at what is blocked. Invariant: a line that is not empty has
exactly one head, and it is the smallest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from mqlite.engine.steps import Ready, Statement, Steps

PROMOTE: Final = """
    UPDATE mqlite_messages SET head = 1
     WHERE seq = (SELECT seq FROM mqlite_messages
                   WHERE queue_id = ? AND line = ? ORDER BY seq LIMIT 1)
    RETURNING state, seq
"""
DEMOTE: Final = """
    UPDATE mqlite_messages SET head = 0 WHERE queue_id = ? AND line = ? AND head = 1
    RETURNING seq
"""
COUNT_READY: Final = """
    SELECT count(*) FROM (
        SELECT 1 FROM mqlite_messages
         WHERE queue_id = ? AND state = 'active' AND head = 1
         ORDER BY priority DESC, sort_at, seq LIMIT ?
    )
"""
TO_STRICT: Final = tuple(
    f"UPDATE mqlite_messages SET line = '', head = 0 WHERE queue_id = ? AND state = '{state}'"
    for state in ("active", "locked", "deferred", "scheduled")
)
FROM_STRICT: Final = tuple(
    f"""UPDATE mqlite_messages SET line = group_id, head = group_id IS NULL
         WHERE queue_id = ? AND state = '{state}'"""
    for state in ("active", "locked", "deferred", "scheduled")
)
PROMOTE_ALL: Final = """
    UPDATE mqlite_messages SET head = 1
     WHERE seq IN (SELECT min(seq) FROM mqlite_messages
                    WHERE queue_id = ? AND line IS NOT NULL GROUP BY line)
"""

_WAKE_AT_MOST: Final = 10_000


class Place(NamedTuple):
    """What has to be known of a message that leaves: its line, and its payload."""

    seq: int
    line: str | None
    head: int
    payload_id: int | None


def leave(queue_id: int, line: str | None, head: int) -> Steps[None]:
    """After a message has left its line: if it was the head, the next one becomes it."""
    if line is not None and head:
        promoted = yield Statement(PROMOTE, (queue_id, line))
        if promoted and promoted[0][0] == "active":
            yield Ready(queue_id, 1)


def enter(queue_id: int, lines: Iterable[str]) -> Steps[None]:
    """After messages that are not head have entered these lines, perhaps before the head."""
    for line in lines:
        before = yield Statement(DEMOTE, (queue_id, line))
        state, seq = (yield Statement(PROMOTE, (queue_id, line)))[0]
        if state == "active" and (not before or before[0][0] != seq):
            yield Ready(queue_id, 1)


def reorder(queue_id: int, *, strict: bool) -> Steps[None]:
    """Rewrite the lines of all live messages after the queue became strict, or no longer is."""
    for sql in TO_STRICT if strict else FROM_STRICT:
        yield Statement(sql, (queue_id,))
    if strict:
        yield Statement(PROMOTE, (queue_id, ""))
    else:
        yield Statement(PROMOTE_ALL, (queue_id,))
    yield from wake(queue_id)


def wake(queue_id: int) -> Steps[None]:
    """Wake as many receivers as there are claimable messages."""
    rows = yield Statement(COUNT_READY, (queue_id, _WAKE_AT_MOST))
    if rows[0][0]:
        yield Ready(queue_id, rows[0][0])

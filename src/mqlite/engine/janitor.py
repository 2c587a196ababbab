"""Removing records that nothing can use any more, in bounded chunks."""

from __future__ import annotations

from typing import Final

from mqlite.engine import content
from mqlite.engine.steps import NOW, Many, Row, Statement, Steps, operation

CHUNK: Final = 1000

SELECT_WIDEST_WINDOW: Final = """
    SELECT coalesce(max(dedup_window_ms), 0) FROM mqlite_queues WHERE deleted_at IS NULL
"""
SELECT_DEDUP: Final = """
    SELECT queue_id, key FROM mqlite_dedup WHERE seen_at <= ? ORDER BY seen_at LIMIT ?
"""
DELETE_DEDUP: Final = "DELETE FROM mqlite_dedup WHERE queue_id = ? AND key = ?"
SELECT_RECEIPTS: Final = """
    SELECT seq, digest FROM mqlite_receipts WHERE expires_at <= ? ORDER BY expires_at LIMIT ?
"""
DELETE_RECEIPT: Final = "DELETE FROM mqlite_receipts WHERE seq = ? AND digest = ?"
SELECT_ATTEMPTS: Final = """
    SELECT queue_id, attempt_id FROM mqlite_attempts
     WHERE expires_at <= ? ORDER BY expires_at LIMIT ?
"""
DELETE_ATTEMPT: Final = "DELETE FROM mqlite_attempts WHERE queue_id = ? AND attempt_id = ?"
SELECT_RETAINED_TOO_LONG: Final = """
    SELECT f.seq, f.payload_id FROM mqlite_queues AS q
      JOIN mqlite_finished AS f
        ON f.queue_id = q.id AND f.finished_at <= ? - q.retain_completed_ms
     WHERE q.deleted_at IS NULL LIMIT ?
"""
SELECT_DELETED_QUEUE: Final = """
    SELECT id FROM mqlite_queues WHERE deleted_at IS NOT NULL ORDER BY id LIMIT 1
"""
SELECT_FINISHED_OF: Final = """
    SELECT seq, payload_id FROM mqlite_finished
     WHERE queue_id = ? ORDER BY finished_at LIMIT ?
"""
DELETE_FINISHED: Final = "DELETE FROM mqlite_finished WHERE seq = ?"
DELETE_OF_QUEUE: Final = (
    """DELETE FROM mqlite_dedup WHERE queue_id = ? AND key IN (
        SELECT key FROM mqlite_dedup WHERE queue_id = ? LIMIT ?) RETURNING 1""",
    """DELETE FROM mqlite_attempts WHERE queue_id = ? AND attempt_id IN (
        SELECT attempt_id FROM mqlite_attempts WHERE queue_id = ? LIMIT ?) RETURNING 1""",
)
DELETE_QUEUE: Final = "DELETE FROM mqlite_queues WHERE id = ?"
DELETE_ORPHANED_PAYLOADS: Final = """
    DELETE FROM mqlite_payloads WHERE id IN (
        SELECT p.id FROM mqlite_payloads AS p WHERE p.id > ? AND p.id <= ?
           AND NOT EXISTS (SELECT 1 FROM mqlite_messages AS m WHERE m.payload_id = p.id)
           AND NOT EXISTS (SELECT 1 FROM mqlite_finished AS f WHERE f.payload_id = p.id))
"""
SELECT_LAST_OF_CHUNK: Final = """
    SELECT max(id) FROM (SELECT id FROM mqlite_payloads WHERE id > ? ORDER BY id LIMIT ?)
"""


@operation()
def forget_duplicates(limit: int = CHUNK) -> Steps[int]:
    """Prune dedup records older than the widest window of any queue, all of them where no
    queue has one; answers how many."""
    now: int = yield NOW
    widest = (yield Statement(SELECT_WIDEST_WINDOW))[0][0]
    return (yield from _prune(SELECT_DEDUP, DELETE_DEDUP, now - widest, limit))


@operation()
def forget_requests(limit: int = CHUNK) -> Steps[int]:
    """Prune settlement receipts and receive attempts that have expired; answers how many."""
    now: int = yield NOW
    receipts = yield from _prune(SELECT_RECEIPTS, DELETE_RECEIPT, now, limit)
    attempts = yield from _prune(SELECT_ATTEMPTS, DELETE_ATTEMPT, now, limit)
    return max(receipts, attempts)


def _prune(select: str, delete: str, until: int, limit: int) -> Steps[int]:
    """Delete by key: a DELETE over a list of two-column keys would walk the first column."""
    rows = yield Statement(select, (until, limit))
    if rows:
        yield Many(delete, rows)
    return len(rows)


@operation()
def forget_finished(limit: int = CHUNK) -> Steps[int]:
    """Prune finished deliveries that were retained for as long as their queue says; answers
    how many."""
    now: int = yield NOW
    rows = yield Statement(SELECT_RETAINED_TOO_LONG, (now, limit))
    yield from _delete_finished(rows)
    return len(rows)


@operation()
def clear_deleted_queue(limit: int = CHUNK) -> Steps[int]:
    """Remove a chunk of what a deleted queue left behind, the queue itself last; answers how
    many rows went."""
    found = yield Statement(SELECT_DELETED_QUEUE)
    if not found:
        return 0
    queue_id = found[0][0]
    rows = yield Statement(SELECT_FINISHED_OF, (queue_id, limit))
    yield from _delete_finished(rows)
    removed = len(rows)
    for sql in DELETE_OF_QUEUE:
        removed += len((yield Statement(sql, (queue_id, queue_id, limit))))
    if removed == 0:
        yield Statement(DELETE_QUEUE, (queue_id,))
        removed = 1
    return removed


def _delete_finished(rows: list[Row]) -> Steps[None]:
    yield Many(DELETE_FINISHED, [(seq,) for seq, _ in rows])
    for _, payload_id in rows:
        yield from content.drop(payload_id)


@operation()
def drop_orphaned_payloads(after: int, limit: int = CHUNK) -> Steps[int]:
    """Delete payloads that no delivery refers to, in the chunk that follows `after`; answers
    where the next one starts, 0 at the end."""
    last = (yield Statement(SELECT_LAST_OF_CHUNK, (after, limit)))[0][0]
    if last is None:
        return 0
    yield Statement(DELETE_ORPHANED_PAYLOADS, (after, last))
    return int(last)

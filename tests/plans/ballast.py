"""Two databases for comparison: one with a handful of messages, and one with the same beside
as many others as a queue in trouble has."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from mqlite.clock import ManualClock
from mqlite.engine import queues, receive, send
from mqlite.engine.steps import Operation
from mqlite.model import OutMessage
from mqlite.stores.names import NameCache
from mqlite.stores.sqlite.runner import Runner

from .statements import schema

T = TypeVar("T")

NOW: Final = 1_700_000_000_000
FAR: Final = NOW + 10**9
PAST: Final = NOW - 10**9
MAX_BYTES: Final = 1 << 20

_INSERT: Final = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)
    INSERT INTO mqlite_messages (
        queue_id, state, head, line, priority, sort_at, visible_at, locked_until, lock_token,
        enqueued_at, ttl_ms, expires_at, group_id, message_id, correlation_id, reply_to,
        content_type, subject, body_size, properties, body)
    SELECT :queue, :state, :head OR (:line IS NOT NULL AND i = 1), :line, 0, 0, :visible_at,
           iif(:state = 'locked', :visible_at, 0), iif(:state = 'locked', 'token', NULL),
           :enqueued_at, 0, :expires_at, :line, '', '', '', '', '', 1, '', x'00'
      FROM n
"""
_RETAINED: Final = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)
    INSERT INTO mqlite_finished
    SELECT 1000000000 + i, :queue, 'completed', :now, NULL, 1, 0, :now, 0, NULL, '', '', '', '', '',
           1, NULL, '', x'00' FROM n
"""
_RECORDS: Final = (
    """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)
    INSERT INTO mqlite_dedup SELECT :queue, 'key ' || i, x'00', i, :far FROM n
    """,
    """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)
    INSERT INTO mqlite_receipts SELECT i, x'00', :far FROM n
    """,
    """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows)
    INSERT INTO mqlite_attempts SELECT :queue, 'attempt ' || i, 'peek_lock', x'00', :far FROM n
    """,
)


class Database:
    """A database in memory, driven step by step on one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.clock = ManualClock(NOW)
        self.runner = Runner(connection.cursor(), self.clock, NameCache())

    def run(self, operation: Operation[T]) -> T:
        return self.runner.run(operation)

    def send(self, queue: str, number: int, **fields: Any) -> list[int]:
        messages = [OutMessage(body=b"%d" % i, **fields) for i in range(number)]
        return self.run(send.send(queue, messages, max_bytes=MAX_BYTES))

    def claim(self, queue: str, number: int) -> list[tuple[int, str]]:
        claimed = self.run(receive.claim(queue, number))
        return [(message.seq_number, message.lock_token) for message in claimed]

    def copy(self) -> Database:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.backup(connection)
        return Database(connection)

    def analyze(self) -> None:
        self.connection.execute("ANALYZE")

    def cost(self, prepare: Callable[[Database], T], act: Callable[[T], Operation[Any]]) -> int:
        """Steps of SQLite's virtual machine that an operation takes; whatever was written is
        undone. Each row that is looked at takes several."""
        steps = 0

        def count() -> None:
            nonlocal steps
            steps += 1

        with self._undone():
            operation = act(prepare(self))
            self.connection.set_progress_handler(count, 1)
            try:
                self.run(operation)
            finally:
                self.connection.set_progress_handler(None, 1)
        return steps

    @contextmanager
    def _undone(self) -> Iterator[None]:
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            self.connection.execute("ROLLBACK")
            self.clock.set(NOW)


def build(rows: int) -> Database:
    """Queues that have `rows` messages of each useless kind, and beside them a few useful ones.

    `q` has dead letters, parked and deferred messages, and a group behind a head that is
    locked for long; `strict` all behind such a head; `elsewhere` as many locked ones; `kept`
    as many retained ones, dedup records and receive attempts.
    """
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(schema())
    database = Database(connection)
    for name, settings in {
        "q": {},
        "strict": {"ordering_mode": "strict_fifo"},
        "elsewhere": {},
        "kept": {"retain_completed_ms": 60_000, "dedup_window_ms": 60_000},
    }.items():
        database.run(queues.create_queue(name, "queue", settings))
    _load(connection, rows)
    return database


def _load(connection: sqlite3.Connection, rows: int) -> None:
    def insert(queue: int, state: str, line: str | None = None, expires_at: int = 0) -> None:
        head = line is None
        fields = {"queue": queue, "state": state, "line": line, "head": head, "rows": rows}
        times = {"visible_at": FAR, "enqueued_at": PAST, "expires_at": expires_at}
        connection.execute(_INSERT, fields | times)

    connection.execute("BEGIN")
    insert(1, "dead_lettered", expires_at=PAST)
    insert(1, "scheduled", expires_at=FAR)
    insert(1, "deferred", expires_at=FAR)
    for queue, line in ((1, "blocked"), (2, "")):
        insert(queue, "active", line, expires_at=FAR)
        connection.execute(
            "UPDATE mqlite_messages SET state = 'locked', locked_until = ?, lock_token = 'token' "
            "WHERE queue_id = ? AND line = ? AND head = 1",
            (FAR, queue, line),
        )
    insert(3, "locked", expires_at=FAR)
    common = {"rows": rows, "queue": 4, "now": NOW, "far": FAR}
    connection.execute(_RETAINED, common)
    for sql in _RECORDS:
        connection.execute(sql, common)
    connection.execute("COMMIT")

"""Operations on a connection the caller already has, inside the caller's transaction.

It takes no lock of the engine and waits for no thread of it. What the operations have to
tell travels as a row in the same transaction, and goes with it if that is rolled back.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from time import monotonic
from typing import Final, TypeVar

from mqlite.clock import Clock
from mqlite.engine.steps import Operation
from mqlite.errors import InvalidArgument, TransactionNotWritable
from mqlite.stores import effects
from mqlite.stores.callers import AUTOCOMMIT_FIX, DEFERRED_FIX, Caller, remember, texts
from mqlite.stores.names import NoNames
from mqlite.stores.sqlite.failures import unavailable
from mqlite.stores.sqlite.foreign import PREPARED
from mqlite.stores.sqlite.runner import Runner

T = TypeVar("T")

INSERT_EFFECTS: Final = "INSERT INTO mqlite_effects (effects) VALUES (?)"
TAKE_WRITE_LOCK: Final = "DELETE FROM main.mqlite_meta WHERE 0"
_RETRY_S: Final = 0.002


class JoinedStore:
    """Runs operations inside the caller's transaction; each fails alone, in a savepoint.

    A connection in the legacy mode of `sqlite3` that has not begun a transaction yet begins
    one here, which the caller's commit or rollback ends. Threads that share the connection
    take turns by the operation.
    """

    def __init__(self, caller: Caller, clock: Clock) -> None:
        self._connection, self._library, self._check = caller
        self._clock = clock

    def run(self, operation: Operation[T]) -> T:
        """The operation's result; true only if and when the caller commits.

        Raises what it raises, InvalidArgument where there is no transaction to join,
        TransactionClosed, TransactionNotWritable, Unavailable.
        """
        self._check()
        try:
            with remember(self._connection).lock, texts(self._connection, str):
                cursor = sqlite3.Cursor(self._connection)
                self._begin(cursor)
                return patiently(cursor, lambda: self._in_savepoint(cursor, operation))
        except sqlite3.Error as error:
            raise explained(error, self._library) from error

    def _begin(self, cursor: sqlite3.Cursor) -> None:
        if self._connection.in_transaction:
            return
        if self._commits_by_itself():
            raise InvalidArgument(
                "the connection is in autocommit mode and has no transaction to join; "
                + AUTOCOMMIT_FIX[self._library]
            )
        cursor.execute("BEGIN IMMEDIATE")

    def _commits_by_itself(self) -> bool:
        return (
            self._connection.isolation_level is None
            or getattr(self._connection, "autocommit", None) is True
        )

    def _in_savepoint(self, cursor: sqlite3.Cursor, operation: Operation[T]) -> T:
        runner = Runner(cursor, self._clock, NoNames())
        cursor.execute("SAVEPOINT mqlite_joined")
        try:
            # After a deferred BEGIN our own first read would fix a snapshot that another
            # connection's commit makes unwritable; a first write waits for the lock instead.
            cursor.execute(TAKE_WRITE_LOCK)
            result = runner.run(operation)
            told = runner.take_effects()
            if told:
                text = effects.encode(told)
                if not cursor.execute("PRAGMA wal_autocheckpoint").fetchone()[0]:
                    text = PREPARED + text
                cursor.execute(INSERT_EFFECTS, (text,))
        except BaseException:
            if self._connection.in_transaction:
                cursor.execute("ROLLBACK TO mqlite_joined")
                cursor.execute("RELEASE mqlite_joined")
            raise
        cursor.execute("RELEASE mqlite_joined")
        return result


def patiently(cursor: sqlite3.Cursor, attempt: Callable[[], T]) -> T:
    """What `attempt` answers once it gets the write lock, within the connection's busy timeout.
    SQLite does not wait where a transaction that has read wants to write: the lock may come
    free with nothing written, and otherwise the next attempt says so. Raises sqlite3.Error."""
    started = monotonic()
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_BUSY:
                raise
            timeout_ms = cursor.execute("PRAGMA busy_timeout").fetchone()[0]
            if monotonic() - started >= timeout_ms / 1000:
                raise
        time.sleep(_RETRY_S)


def explained(error: sqlite3.Error, library: str) -> Exception:
    """What SQLite's error means to somebody whose transaction is joined."""
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_BUSY_SNAPSHOT:
        return TransactionNotWritable(
            "the transaction has read before another connection wrote and can no longer "
            f"write; roll it back, and {DEFERRED_FIX[library]}"
        )
    return unavailable(error) or error

"""The outbox: sends inside a transaction that the caller has on the queue's file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, Final, TypeVar

from mqlite.clock import Clock, SystemClock
from mqlite.embedded.calls import Calls
from mqlite.embedded.transactional import Sending, Settling
from mqlite.engine.steps import Operation
from mqlite.errors import SchemaMismatch
from mqlite.model import MAX_MESSAGE_BYTES
from mqlite.stores.callers import Caller, main_file, recognise
from mqlite.stores.joined import JoinedStore
from mqlite.stores.sqlite.ledger import SCHEMA_VERSION

T = TypeVar("T")

SELECT_SCHEMA_VERSION: Final = "SELECT value FROM mqlite_meta WHERE key = 'schema_version'"


class Joined(Settling):
    """A queue inside a transaction that the caller has on the same file; `used` is called
    after every operation, so that the commit is looked for."""

    def __init__(
        self, caller: Caller, calls: Calls, clock: Clock, used: Callable[[], None]
    ) -> None:
        super().__init__(calls)
        self._store = JoinedStore(caller, clock)
        self._used = used

    def _run(self, operation: Operation[T]) -> T:
        result = self._store.run(operation)
        self._used()
        return result


class Outbox(Sending):
    """Sends, and only sends, inside the caller's transaction; owns nothing."""

    def __init__(self, caller: Caller, calls: Calls, clock: Clock) -> None:
        super().__init__(calls)
        self._store = JoinedStore(caller, clock)

    def _run(self, operation: Operation[T]) -> T:
        return self._store.run(operation)


def outbox(connection: Any, *, max_message_bytes: int = MAX_MESSAGE_BYTES) -> Outbox:
    """Send inside the caller's transaction, from any process on the machine.

    `connection` is a `sqlite3.Connection`, a SQLAlchemy `Connection` or `Session`, or
    Django's connection, on the file of a queue that some process has created. The process
    that owns the queue notices the commit within 100 ms; rolled back, nothing was sent.
    Raises InvalidArgument for other connections, SchemaMismatch where the file holds no
    queue of this version.
    """
    caller = recognise(connection)
    _check_schema(caller.connection)
    clock = SystemClock()
    return Outbox(caller, Calls(clock, max_message_bytes), clock)


def _check_schema(connection: sqlite3.Connection) -> None:
    path = main_file(connection)
    cursor = sqlite3.Cursor(connection)
    cursor.row_factory = None
    try:
        rows = cursor.execute(SELECT_SCHEMA_VERSION).fetchall()
    except sqlite3.OperationalError:
        rows = []
    if not rows:
        raise SchemaMismatch(f"{path} holds no queue; create it with mqlite.open({str(path)!r})")
    if rows[0][0] not in (SCHEMA_VERSION, SCHEMA_VERSION.encode()):
        raise SchemaMismatch(
            f"{path} has schema version {rows[0][0]}, this version of mqlite needs {SCHEMA_VERSION}"
        )

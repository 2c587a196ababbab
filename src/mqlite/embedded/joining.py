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
from mqlite.stores.callers import Caller, main_file, recognise, remember
from mqlite.stores.joined import TAKE_WRITE_LOCK, JoinedStore, explained, patiently
from mqlite.stores.sqlite.ledger import SCHEMA_VERSION

T = TypeVar("T")

SELECT_SCHEMA_VERSION: Final = (
    "SELECT CAST(value AS BLOB) FROM main.mqlite_meta WHERE key = 'schema_version'"
)


class Joined(Settling):
    """A queue inside a transaction that the caller has on the same file; `announce` is
    called before every operation, so that the commit is looked for. It raises where the
    queue takes no work."""

    def __init__(
        self, caller: Caller, calls: Calls, clock: Clock, announce: Callable[[], None]
    ) -> None:
        super().__init__(calls)
        self._store = JoinedStore(caller, clock)
        self._announce = announce
        announce()

    def _run(self, operation: Operation[T]) -> T:
        self._announce()
        return self._store.run(operation)


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
    with remember(caller.connection).lock:
        _check_schema(caller)
    clock = SystemClock()
    return Outbox(caller, Calls(clock, max_message_bytes), clock)


def _check_schema(caller: Caller) -> None:
    path = main_file(caller.connection)
    cursor = sqlite3.Cursor(caller.connection)
    try:
        if caller.connection.in_transaction:
            patiently(cursor, lambda: cursor.execute(TAKE_WRITE_LOCK))
        row = cursor.execute(SELECT_SCHEMA_VERSION).fetchone()
    except sqlite3.OperationalError as error:
        meaning = explained(error, caller.library)
        if meaning is not error:
            raise meaning from error
        row = None
    if row is None:
        raise SchemaMismatch(f"{path} holds no queue; create it with mqlite.open({str(path)!r})")
    version = row[0].decode()
    if version != SCHEMA_VERSION:
        raise SchemaMismatch(
            f"{path} has schema version {version}, this version of mqlite needs {SCHEMA_VERSION}: "
            "use the same version of mqlite in every process"
        )

"""The connections callers hand over: whose they are, and the sqlite3 connection inside."""

from __future__ import annotations

import gc
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

from mqlite.errors import InvalidArgument

DEFERRED_FIX: Final = {
    "sqlite3": "begin it with `connection.execute('BEGIN IMMEDIATE')` before its first statement",
    "SQLAlchemy": "call `mqlite.configure(engine)` once after creating the engine",
    "Django": "set OPTIONS = {'transaction_mode': 'IMMEDIATE'} for this database",
}
AUTOCOMMIT_FIX: Final = {
    "sqlite3": "begin one with `connection.execute('BEGIN IMMEDIATE')`",
    "SQLAlchemy": "do not use the AUTOCOMMIT isolation level, or call `mqlite.configure(engine)`",
    "Django": "use it inside `transaction.atomic()`",
}


class Caller(NamedTuple):
    """A caller's connection, and the library it came from."""

    connection: sqlite3.Connection
    library: str


def recognise(connection: Any) -> Caller:
    """The sqlite3 connection of a `sqlite3.Connection`, a SQLAlchemy `Connection` or
    `Session`, or a Django database connection.

    Raises InvalidArgument for anything else, naming what it is.
    """
    if isinstance(connection, sqlite3.Connection):
        return Caller(connection, "sqlite3")
    package = type(connection).__module__.partition(".")[0]
    if package == "sqlalchemy":
        return Caller(_checked(_from_sqlalchemy(connection)), "SQLAlchemy")
    if package == "django":
        connection.ensure_connection()
        return Caller(_checked(connection.connection), "Django")
    raise _refused(connection)


def _from_sqlalchemy(connection: Any) -> Any:
    if hasattr(connection, "get_bind"):
        connection = connection.connection()
    if not hasattr(connection, "exec_driver_sql"):
        raise _refused(connection)
    if not connection.in_transaction():
        # What any statement would do; without it SQLAlchemy would not commit ours.
        connection.begin()
    return connection.connection.dbapi_connection


def _checked(connection: Any) -> sqlite3.Connection:
    if isinstance(connection, sqlite3.Connection):
        return connection
    raise _refused(connection)


def _refused(connection: Any) -> InvalidArgument:
    kind = type(connection)
    return InvalidArgument(
        f"connection is a {kind.__module__}.{kind.__qualname__}; use one of the standard library's "
        "sqlite3, a SQLAlchemy Connection or Session over it, or Django's. Another SQLite library "
        "in the same process can break the file's locks"
    )


def main_file(connection: sqlite3.Connection) -> Path:
    """The file of the connection's main database. Raises InvalidArgument where it has none."""
    rows = sqlite3.Cursor(connection).execute("PRAGMA database_list").fetchall()
    for row in rows:
        if tuple(row)[1] == "main":
            path = tuple(row)[2]
            if path:
                return Path(path)
    raise InvalidArgument("connection is to a memory database; a queue is joined on its file")


def same_file(connection: sqlite3.Connection, path: Path) -> None:
    """Raises InvalidArgument unless the connection's main database is the file at `path`."""
    main = main_file(connection)
    if not main.samefile(path):
        raise InvalidArgument(
            f"connection's main database is {main}, the queue is in {path}; an attached "
            "database cannot be joined"
        )


_users: dict[int, int] = {}


def remember(connection: sqlite3.Connection) -> None:
    """The calling thread uses this connection; see `in_own_transaction`."""
    if len(_users) >= 1000:
        _users.clear()
    _users[id(connection)] = threading.get_ident()


def in_own_transaction(path: Path) -> bool:
    """Whether the calling thread has a transaction open on the file at `path`: then it may
    be waiting for itself.

    `sqlite3` keeps no list of its connections and they cannot be referenced weakly, so all
    objects are looked through; for use where something is already waiting.
    """
    return any(
        issubclass(type(candidate), sqlite3.Connection)
        and candidate.in_transaction
        and _is_own(candidate)
        and _is_on(candidate, path)
        for candidate in gc.get_objects()
    )


def _is_own(connection: sqlite3.Connection) -> bool:
    if id(connection) in _users:
        return _users[id(connection)] == threading.get_ident()
    if not _may_be_used_here(connection):
        return False
    # One that any thread may use says nothing about whose it is.
    with ThreadPoolExecutor(1) as elsewhere:
        return not elsewhere.submit(_may_be_used_here, connection).result()


def _may_be_used_here(connection: sqlite3.Connection) -> bool:
    try:
        sqlite3.Cursor(connection)
    except sqlite3.ProgrammingError:
        return False
    return True


def _is_on(connection: sqlite3.Connection, path: Path) -> bool:
    try:
        return main_file(connection).samefile(path)
    except (InvalidArgument, OSError, sqlite3.Error):
        return False

"""The connections callers hand over: whose they are, and the sqlite3 connection inside."""

from __future__ import annotations

import gc
import os
import sqlite3
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from mqlite.errors import InvalidArgument, TransactionClosed

DEFERRED_FIX: Final = {
    "sqlite3": "begin it with `connection.execute('BEGIN IMMEDIATE')` before its first statement "
    "(with `autocommit=False`, which begins by itself, set `autocommit` to True first)",
    "SQLAlchemy": "call `mqlite.configure(engine)` once after creating the engine",
    "Django": "set OPTIONS = {'transaction_mode': 'IMMEDIATE'} for this database",
}
AUTOCOMMIT_FIX: Final = {
    "sqlite3": "begin one with `connection.execute('BEGIN IMMEDIATE')`",
    "SQLAlchemy": "do not use the AUTOCOMMIT isolation level",
    "Django": "use it inside `transaction.atomic()`",
}

# Not a SELECT from pragma_database_list: that would begin reading in the caller's transaction.
_DATABASES: Final = "PRAGMA database_list"


def _always() -> None:
    pass


class Caller(NamedTuple):
    """A caller's connection, and the library it came from. `check` raises TransactionClosed
    where the library says that the transaction it was handed over in has ended."""

    connection: sqlite3.Connection
    library: str
    check: Callable[[], None] = _always


def recognise(connection: Any) -> Caller:
    """The sqlite3 connection of a `sqlite3.Connection`, a SQLAlchemy `Connection` or
    `Session`, or a Django database connection.

    Raises InvalidArgument for anything else, naming what it is.
    """
    if isinstance(connection, sqlite3.Connection):
        return Caller(connection, "sqlite3")
    package = type(connection).__module__.partition(".")[0]
    if package == "sqlalchemy":
        return _from_sqlalchemy(connection)
    if package == "django" and hasattr(connection, "ensure_connection"):
        connection.ensure_connection()
        return Caller(_checked(connection.connection), "Django")
    raise _refused(connection)


def _from_sqlalchemy(connection: Any) -> Caller:
    if type(connection).__module__.startswith("sqlalchemy.ext.asyncio"):
        raise _refused(connection)
    if hasattr(connection, "get_bind"):
        connection = connection.connection()
    if not hasattr(connection, "exec_driver_sql"):
        raise _refused(connection)
    if not connection.in_transaction():
        # What any statement would do; without it SQLAlchemy would not commit ours.
        connection.begin()
    inner = _checked(connection.connection.dbapi_connection)
    if inner.isolation_level is not None:
        _keep_savepoints(connection)
    transaction = connection.get_transaction()

    def check() -> None:
        # The pool may have given the sqlite3 connection to somebody else by then.
        if not transaction.is_active:
            raise TransactionClosed("the SQLAlchemy transaction it was joined in has ended")

    return Caller(inner, "SQLAlchemy", check)


def _keep_savepoints(connection: Any) -> None:
    """Without an explicit BEGIN the outermost `begin_nested` is SQLite's whole transaction,
    which its RELEASE would commit before the caller does."""
    from sqlalchemy import event

    if not event.contains(connection, "release_savepoint", _double):
        event.listen(connection, "release_savepoint", _double)


def _double(connection: Any, name: str, context: Any) -> None:
    # The RELEASE that follows ends this one, and leaves the first for the COMMIT.
    sqlite3.Cursor(connection.connection.dbapi_connection).execute(f'SAVEPOINT "{name}"')


def _checked(connection: Any) -> sqlite3.Connection:
    if isinstance(connection, sqlite3.Connection):
        return connection
    raise _refused(connection)


def _refused(connection: Any) -> InvalidArgument:
    kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
    return InvalidArgument(
        f"connection is of type {kind}; use one of the standard library's sqlite3, a "
        "SQLAlchemy Connection or Session over it, or Django's. Another SQLite library in the same "
        "process can break the file's locks"
    )


def main_file(connection: sqlite3.Connection) -> Path:
    """The file of the connection's main database. Raises InvalidArgument where it has none."""
    with texts(connection, bytes):
        rows = sqlite3.Cursor(connection).execute(_DATABASES).fetchall()
    file = next((file for _, name, file in rows if name == b"main"), b"")
    if not file:
        raise InvalidArgument("connection is to a memory database; a queue is joined on its file")
    return Path(os.fsdecode(file))


@contextmanager
def texts(connection: sqlite3.Connection, factory: type[str] | type[bytes]) -> Generator[None]:
    """Text as `factory` makes it, whatever the caller's connection makes of it."""
    theirs = connection.text_factory
    connection.text_factory = factory
    try:
        yield
    finally:
        connection.text_factory = theirs


def same_file(connection: sqlite3.Connection, path: Path) -> None:
    """Raises InvalidArgument unless the connection's main database is the file at `path`."""
    with remember(connection).lock:
        main = main_file(connection)
    try:
        same = main.samefile(path)
    except OSError:
        same = False
    if not same:
        raise InvalidArgument(
            f"connection's main database is {main}, the queue is in {path}; an attached "
            "database cannot be joined"
        )


class Known:
    """What is known of a connection of a caller's: the thread that used it last, and
    whether it was prepared. `lock` is held by whoever works on it."""

    __slots__ = ("__weakref__", "lock", "prepared", "thread")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.prepared = False
        self.thread = 0

    def __call__(self) -> None:
        """As an SQL function, of no use."""


_known: WeakValueDictionary[int, Known] = WeakValueDictionary()
_knowing: Final = threading.Lock()


def remember(connection: sqlite3.Connection) -> Known:
    """What is known of this connection, which the calling thread uses."""
    with _knowing:
        known = _known.get(id(connection))
        if known is None:
            # Connections cannot be referenced weakly and ids are used again; what is
            # registered with one lives exactly as long as it is open.
            known = Known()
            sqlite3.Connection.create_function(connection, "mqlite_known", 0, known)
            _known[id(connection)] = known
    known.thread = threading.get_ident()
    return known


def any_prepared() -> bool:
    """Whether this process has a connection open that was prepared."""
    with _knowing:
        return any(known.prepared for known in _known.values())


def in_own_transaction(path: Path) -> bool:
    """Whether the calling thread holds the write lock of the file at `path` by a connection
    of a caller's: then it waits for itself.

    `sqlite3` keeps no list of its connections, so all objects are looked through; for use
    where something is already waiting.
    """
    return any(
        _is_own(connection) and _is_on(connection, path) and _is_writing(connection)
        for connection in _open_transactions()
    )


def _open_transactions() -> Iterator[sqlite3.Connection]:
    # By identity of the type: isinstance() asks the objects, and a lazy one would load what it
    # stands for; hashing or comparing the types runs what their metaclasses say.
    kinds = {id(kind) for kind in _with_subclasses(sqlite3.Connection)}
    for connection in [found for found in gc.get_objects() if id(type(found)) in kinds]:
        with suppress(sqlite3.Error):  # it is closed
            if connection.in_transaction:
                yield connection


def _with_subclasses(kind: type) -> set[type]:
    return {kind}.union(*map(_with_subclasses, kind.__subclasses__()))


def _is_own(connection: sqlite3.Connection) -> bool:
    if not _may_be_used_here(connection):
        return False
    known = _known.get(id(connection))
    if known is not None:
        return known.thread == threading.get_ident()
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


class _Looked(Exception):
    """Nothing of a backup is wanted but its first answer."""


def _is_writing(connection: sqlite3.Connection) -> bool:
    """A transaction that only reads holds nobody up; SQLite tells the two apart by refusing
    to copy from one that writes."""
    status = sqlite3.SQLITE_OK

    def stop(answer: int, remaining: int, total: int) -> None:
        nonlocal status
        status = answer
        raise _Looked

    nowhere = sqlite3.connect(":memory:")
    try:
        connection.backup(nowhere, pages=1, progress=stop, sleep=0)
    except _Looked:
        pass
    except sqlite3.Error:
        return False
    finally:
        nowhere.close()
    return status == sqlite3.SQLITE_BUSY

"""Connections to a location, set up alike and read back."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import ExitStack
from time import monotonic
from typing import Any, Final, TypeVar

from mqlite.errors import InvalidArgument, Unavailable
from mqlite.stores.sqlite.failures import is_busy, refuse
from mqlite.stores.sqlite.location import Location

T = TypeVar("T")

SLICE_S: Final = 0.05
"""For how long anything waits for the lock of the file before it looks whether to go on."""
"""How long SQLite itself waits for a lock; whoever waits longer tries again, and can give
up in between."""
LOG_LIMIT_BYTES: Final = 4 * 1024 * 1024
"""What a write that resets the log leaves of its file."""

LOG_RESET_WARNING: Final = (
    f"another connection writes to this file, and SQLite {sqlite3.sqlite_version} has the WAL-reset "
    "bug (fixed in 3.51.3, 3.50.7 and 3.44.6): prepare every other connection with "
    "mqlite.configure()"
)

_SYNCHRONOUS: Final = ("OFF", "NORMAL", "FULL", "EXTRA")
_SLICE_MS: Final = int(SLICE_S * 1000)
_OPEN_S: Final = 5.0
_STATEMENTS: Final = 256
_SHOWN: Final = (
    "journal_mode",
    "synchronous",
    "foreign_keys",
    "auto_vacuum",
    "temp_store",
    "wal_autocheckpoint",
    "journal_size_limit",
    "busy_timeout",
    "page_size",
)
_AUTO_VACUUM_INCREMENTAL: Final = 2


def parse_synchronous(text: str) -> str:
    """The accepted spelling. Raises InvalidArgument."""
    value = text.strip().upper()
    if value not in _SYNCHRONOUS:
        raise InvalidArgument(f"synchronous is {text!r}: use one of {', '.join(_SYNCHRONOUS)}")
    return value


def open_writer(location: Location, synchronous: str) -> sqlite3.Connection:
    """A connection that may write. Raises Unavailable."""
    if location.path is None:
        connection = _connect(":memory:", uri=False)
        _set(connection, foreign_keys="ON", temp_store="MEMORY")
        return connection
    try:
        connection = _connect(location.uri(mode="rwc"))
        with ExitStack() as undo:
            undo.callback(connection.close)
            _prepare(connection, location, synchronous)
            undo.pop_all()
    except sqlite3.Error as error:
        refuse(error, str(location))
        raise
    return connection


def _prepare(connection: sqlite3.Connection, location: Location, synchronous: str) -> None:
    _set(connection, busy_timeout=_SLICE_MS)
    if not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall():
        _set(connection, auto_vacuum="INCREMENTAL")
    _use_log(connection, location)
    _set(
        connection,
        synchronous=synchronous,
        foreign_keys="ON",
        temp_store="MEMORY",
        wal_autocheckpoint=0,
        journal_size_limit=LOG_LIMIT_BYTES,
    )


def end_waiting(connection: sqlite3.Connection) -> None:
    """From here on the writer waits by trying again itself: SQLite's own handler backs off."""
    _set(connection, busy_timeout=0)


def open_reader(location: Location) -> sqlite3.Connection:
    """A connection to an open file that cannot write."""
    connection = _connect(location.uri(mode="ro"))
    _set(connection, busy_timeout=_SLICE_MS, temp_store="MEMORY")
    return connection


def open_second(location: Location) -> sqlite3.Connection:
    """A second writing connection to an open file, for checkpoints."""
    connection = _connect(location.uri(mode="rw"))
    _set(connection, busy_timeout=_SLICE_MS, wal_autocheckpoint=0)
    return connection


def patiently(call: Callable[[], T]) -> T:
    """What `call` answers; another connection may hold it up for some seconds. For opening
    only: it cannot be cancelled. Raises sqlite3.Error."""
    until = monotonic() + _OPEN_S
    while True:
        try:
            return call()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or monotonic() >= until:
                raise


def settings(connection: sqlite3.Connection) -> dict[str, str | int]:
    """The settings in force, read back."""
    found = {}
    for name in _SHOWN:
        row = pragma(connection, name)
        if row is not None:
            found[name] = row
    return found


def warnings(connection: sqlite3.Connection, location: Location) -> list[str]:
    """What an operator should know about this database."""
    if location.path is None or pragma(connection, "auto_vacuum") == _AUTO_VACUUM_INCREMENTAL:
        return []
    return [
        "auto_vacuum is not INCREMENTAL: the file had tables before this queue, so pages that become "
        "free are used again, but given back to the disk only by a full vacuum"
    ]


def has_log_reset_bug(version: tuple[int, int, int]) -> bool:
    """Whether this SQLite can lose pages when two connections write and checkpoint."""
    fixed = {(3, 44): 6, (3, 50): 7}
    return version < (3, 51, 3) and version[2] < fixed.get(version[:2], 1_000_000)


def pragma(connection: sqlite3.Connection, name: str) -> Any:
    """The value of a setting."""
    row = connection.execute(f"PRAGMA {name}").fetchone()
    return row[0] if row else None


def _connect(database: str, *, uri: bool = True) -> sqlite3.Connection:
    return sqlite3.connect(
        database,
        uri=uri,
        timeout=SLICE_S,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS,
    )


def _set(connection: sqlite3.Connection, **values: str | int) -> None:
    for name, value in values.items():
        connection.execute(f"PRAGMA {name} = {value}").fetchall()


def _use_log(connection: sqlite3.Connection, location: Location) -> None:
    """Switch to write-ahead logging."""
    (mode,) = patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone())
    if mode != "wal":
        raise Unavailable(
            f"SQLite cannot use write-ahead logging for {location} (it answers {mode!r}): the file "
            "system has no shared memory, as on network and some container mounts. Put the "
            "database on a local disk",
            reason="storage",
        )

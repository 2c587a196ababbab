"""SQLite's error codes as the errors a caller understands."""

from __future__ import annotations

import sqlite3
from typing import Final

from mqlite.errors import Unavailable

_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_REASONS: Final = {
    sqlite3.SQLITE_BUSY: ("database_locked", "another connection holds the database file"),
    sqlite3.SQLITE_LOCKED: ("database_locked", "another connection holds the database file"),
    sqlite3.SQLITE_FULL: ("disk_full", "the disk, or the room the database may take, is full"),
    sqlite3.SQLITE_READONLY: ("read_only", "the database file cannot be written"),
    sqlite3.SQLITE_CANTOPEN: ("read_only", "the database file cannot be opened for writing"),
    sqlite3.SQLITE_PERM: ("read_only", "the database file may not be written"),
    sqlite3.SQLITE_IOERR: ("storage", "the storage failed"),
    sqlite3.SQLITE_CORRUPT: ("storage", "the database file is damaged"),
    sqlite3.SQLITE_NOTADB: ("storage", "the database file is damaged"),
    sqlite3.SQLITE_NOMEM: ("storage", "SQLite is out of memory"),
}


def _primary(error: sqlite3.Error) -> int:
    # An extended result code carries the primary one in its low byte.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    """Whether trying again later is all that is needed."""
    return _primary(error) in _BUSY


def unavailable(error: BaseException) -> Unavailable | None:
    """`Unavailable` where `error` says that the database could not take the operation and
    nothing was written, else None."""
    if not isinstance(error, sqlite3.Error) or _primary(error) not in _REASONS:
        return None
    reason, text = _REASONS[_primary(error)]
    return Unavailable(
        f"{text} ({error})",
        reason=reason,
        retry_after=1 if reason == "database_locked" else None,
    )


def refuse(error: sqlite3.Error) -> None:
    """Raises Unavailable where `error` says that the database could not take the operation;
    otherwise the caller raises the error itself, which must not become its own cause."""
    if (translated := unavailable(error)) is not None:
        raise translated from error

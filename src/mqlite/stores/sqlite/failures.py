"""SQLite's error codes as the errors a caller understands."""

from __future__ import annotations

import sqlite3
from typing import Final

from mqlite.errors import Unavailable

_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_REASONS: Final = {
    sqlite3.SQLITE_BUSY: ("database_locked", "another connection holds {file}"),
    sqlite3.SQLITE_LOCKED: ("database_locked", "another connection holds {file}"),
    sqlite3.SQLITE_FULL: ("disk_full", "the disk, or the room the database may take, is full"),
    sqlite3.SQLITE_READONLY: ("read_only", "{file} cannot be written"),
    sqlite3.SQLITE_CANTOPEN: ("read_only", "{file} cannot be opened for writing"),
    sqlite3.SQLITE_PERM: ("read_only", "{file} may not be written"),
    sqlite3.SQLITE_IOERR: ("storage", "the storage failed"),
    sqlite3.SQLITE_CORRUPT: ("storage", "{file} is damaged"),
    sqlite3.SQLITE_NOTADB: ("storage", "{file} is damaged"),
    sqlite3.SQLITE_NOMEM: ("storage", "SQLite is out of memory"),
}
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_NEXT_STEP: Final = "; 'The database fails' in docs/operations.md says how to go on"


def _primary(error: sqlite3.Error) -> int:
    # An extended result code carries the primary one in its low byte.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    """Whether trying again later is all that is needed."""
    return _primary(error) in _BUSY


def unavailable(error: BaseException, file: str = "the database file") -> Unavailable | None:
    """`Unavailable` where `error` says that the database could not take the operation and
    nothing was written, else None. `file` is what it is called."""
    if not isinstance(error, sqlite3.Error) or _primary(error) not in _REASONS:
        return None
    reason, text = _REASONS[_primary(error)]
    more = _NEXT_STEP if _primary(error) in _DAMAGED else ""
    return Unavailable(
        f"{text.format(file=file)} ({error}){more}",
        reason=reason,
        retry_after=1 if reason == "database_locked" else None,
    )


def refuse(error: sqlite3.Error, file: str = "the database file") -> None:
    """Raises Unavailable where `error` says that the database could not take the operation;
    otherwise the caller raises the error itself, which must not become its own cause."""
    if (translated := unavailable(error, file)) is not None:
        raise translated from error

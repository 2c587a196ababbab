"""What an error says of the database: its code, its kind, and words that quote nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from mqlite.errors import Canceled, Closed, MqliteError, OutcomeUnknown, Unavailable
from mqlite.observation.schema import ErrorDetail
from mqlite.observation.vocabulary import Category, ErrorCode, Outcome


class Fault(NamedTuple):
    """How an operation failed, in the words of the vocabulary and in a sentence for people."""

    outcome: Outcome
    code: ErrorCode
    category: Category
    explanation: str

    @property
    def interrupted(self) -> bool:
        """Whether somebody wanted it to end."""
        return self.category == "interrupted"


_CANCELED: Final = Fault(
    "error", "canceled", "interrupted", "whoever asked for it did not wait for it"
)
_CLOSED: Final = Fault("error", "closed", "interrupted", "the queue was closing")
_BUSY: Final = Fault(
    "error",
    "busy",
    "busy",
    "the database was in use for longer than the operation could wait",
)
_FULL: Final = Fault(
    "error", "full", "storage", "the disk, or the room the database may take, is full"
)
_IO: Final = Fault("error", "io", "storage", "the database file could not be read or written")
_CORRUPT: Final = Fault("error", "corrupt", "storage", "the database file is damaged")
_NO_MEMORY: Final = Fault("error", "other", "storage", "SQLite is out of memory")
_CONSTRAINT: Final = Fault(
    "error", "other", "constraint", "the database refused a row that breaks one of its rules"
)
_SCHEMA: Final = Fault(
    "error", "other", "schema", "the tables of the database are not as they should be"
)
_UNKNOWN: Final = Fault(
    "outcome_unknown",
    "outcome_unknown",
    "outcome_unknown",
    "the acknowledgement was lost: it may or may not have been done; look before trying again",
)
_REJECTED: Final = Fault(
    "rejected",
    "application",
    "application",
    "the operation was refused for what was asked of it, or rolled back by the program",
)
_OTHER: Final = Fault(
    "error",
    "other",
    "other",
    "the operation failed in a way that nobody foresaw; the private log tells more",
)

_BY_SQLITE_NAME: Final = {
    "BUSY": _BUSY,
    "LOCKED": _BUSY,
    "FULL": _FULL,
    "CORRUPT": _CORRUPT,
    "NOTADB": _CORRUPT,
    "IOERR": _IO,
    "READONLY": _IO,
    "CANTOPEN": _IO,
    "PERM": _IO,
    "NOMEM": _NO_MEMORY,
    "CONSTRAINT": _CONSTRAINT,
    "SCHEMA": _SCHEMA,
    "ERROR": _SCHEMA,
}
"""By the first word of SQLite's name for the error. An error without a name of its own is a
statement that the database does not understand: its schema is not ours."""

_BY_REASON: Final = {
    "overloaded": _BUSY,
    "database_locked": _BUSY,
    "disk_full": _FULL,
    "read_only": _IO,
    "storage": _IO,
}
"""By the reason of `Unavailable`, where SQLite was not asked."""


def fault_of(error: BaseException) -> Fault:
    """What went wrong, as far as the error and its causes tell."""
    if isinstance(error, Canceled) or not isinstance(error, Exception):
        return _CANCELED
    if isinstance(error, Closed):
        return _CLOSED
    if isinstance(error, OutcomeUnknown):
        return _UNKNOWN
    name = sqlite_name(error)
    if name:
        return _BY_SQLITE_NAME.get(name.removeprefix("SQLITE_").partition("_")[0], _OTHER)
    if isinstance(error, Unavailable):
        return _BY_REASON.get(error.reason, _OTHER)
    return _REJECTED if isinstance(error, MqliteError) else _OTHER


def sqlite_name(error: BaseException) -> str:
    """SQLite's name for what it answered, as in SQLITE_IOERR_WRITE; '' where it was not
    asked."""
    names = (getattr(each, "sqlite_errorname", None) for each in _causes(error))
    return next((str(name) for name in names if name), "")


def _causes(error: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__


def detail(error: BaseException, fault: Fault, step: str, at_ms: int) -> ErrorDetail:
    """The failure for everybody who may observe: generated words, nothing of the error's."""
    name = sqlite_name(error)
    kind = "|".join((step, fault.code, fault.category, type(error).__name__, name))
    return ErrorDetail(
        at_ms=at_ms,
        step=step,
        category=fault.category,
        explanation=fault.explanation,
        fingerprint=hashlib.sha256(kind.encode()).hexdigest()[:16],
        sqlite_code=name or None,
    )

"""Settings that come from the environment: the database, and what `serve` is told."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import mqlite
from mqlite.cli import streams
from mqlite.cli.streams import CommandError
from mqlite.durations import parse_duration
from mqlite.errors import Unavailable
from mqlite.model import MAX_MESSAGE_BYTES

if TYPE_CHECKING:
    from mqlite.embedded import Embedded

T = TypeVar("T")
U = TypeVar("U")

DEFAULT_DATABASE: Final = "file:./mq.db"
SYNC_LEVELS: Final = ("NORMAL", "FULL", "OFF", "EXTRA")
DEFAULT_DLQ_AGE: Final = "14d"
DEFAULT_DLQ_COUNT: Final = 1_000_000


class Retention(NamedTuple):
    """How long and how many dead letters a broker keeps; None is unbounded."""

    max_age: str | None
    max_count: int | None
    max_bytes: int | None


KEEP_ALL: Final = Retention(None, None, None)
_OF_THE_FILE: Final = ("database_locked", "disk_full", "read_only", "storage")


def open_embedded(retention: Retention = KEEP_ALL) -> Embedded:
    """The database of MQLITE_DB, opened in this process."""
    return mqlite.open(
        database(),
        synchronous=synchronous(),
        max_message_bytes=max_message_bytes(),
        dlq_max_age=retention.max_age,
        dlq_max_count=retention.max_count,
        dlq_max_bytes=retention.max_bytes,
    )


@contextmanager
def embedded(retention: Retention = KEEP_ALL) -> Iterator[Embedded]:
    """The database of MQLITE_DB, open until the block ends. What it cannot do then because of
    its file is told with the name of that."""
    with closing(open_embedded(retention)) as mq:
        try:
            yield mq
        except Unavailable as error:
            if error.reason not in _OF_THE_FILE:
                raise
            raise CommandError(f"{database()}: {error}") from None


def database() -> str:
    return os.environ.get("MQLITE_DB") or DEFAULT_DATABASE


def synchronous() -> str:
    """MQLITE_SYNC. Raises CommandError for a value it does not know, since a typo must not
    quietly lower the durability."""
    value = os.environ.get("MQLITE_SYNC", "").strip()
    level = value.upper() or "NORMAL"
    if level not in SYNC_LEVELS:
        raise CommandError(f"MQLITE_SYNC must be NORMAL, FULL, OFF or EXTRA, got {value!r}")
    return level


def max_message_bytes() -> int:
    return _tolerant("MQLITE_MAX_MESSAGE_BYTES", MAX_MESSAGE_BYTES, _positive)


def retention() -> Retention:
    """MQLITE_DLQ_*: a bound that is zero or negative is no bound."""
    if os.environ.get("MQLITE_DLQ_RETENTION", "").strip().lower() == "off":
        return KEEP_ALL
    return Retention(
        max_age=_tolerant("MQLITE_DLQ_MAX_AGE", DEFAULT_DLQ_AGE, _age),
        max_count=_tolerant("MQLITE_DLQ_MAX_COUNT", DEFAULT_DLQ_COUNT, _bound),
        max_bytes=_tolerant("MQLITE_DLQ_MAX_BYTES", None, _bound),
    )


def _tolerant(name: str, default: T, read: Callable[[str], U]) -> T | U:
    """What `read` makes of a setting; a bad value is warned about, then the default holds
    (as existing deployments expect)."""
    value = os.environ.get(name, "").strip()
    if not value:
        return default
    try:
        return read(value)
    except ValueError as error:
        streams.warn(f"{name} is ignored: {error}; using {default or 'no bound'}")
        return default


def _positive(value: str) -> int:
    number = _whole(value)
    if number <= 0:
        raise ValueError(f"it must be positive, got {value!r}")
    return number


def _bound(value: str) -> int | None:
    number = _whole(value)
    return number if number > 0 else None


def _whole(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"it must be a whole number, got {value!r}") from None


def _age(value: str) -> str | None:
    return value if parse_duration(value) > 0 else None

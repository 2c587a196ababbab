"""Points in time on a command line: as RFC 3339, or as a duration from now."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from mqlite.cli.streams import CommandError
from mqlite.durations import parse_duration

_RFC3339: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$", re.ASCII
)


def read_time(text: str, flag: str, now: int) -> datetime:
    """An RFC 3339 time, or a duration from `now` (epoch ms); in the future either way. Raises
    CommandError naming `flag`."""
    time = _read_rfc3339(text) or _after(text, flag, now)
    if time.timestamp() * 1000 <= now:
        raise CommandError(f"{flag} must be in the future, got {text!r}")
    return time


def rfc3339(time: datetime) -> str:
    fraction = f"{time.microsecond:06}".rstrip("0")
    return f"{time:%Y-%m-%dT%H:%M:%S}{'.' if fraction else ''}{fraction}Z"


def _read_rfc3339(text: str) -> datetime | None:
    if not _RFC3339.match(text):
        return None
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _after(text: str, flag: str, now: int) -> datetime:
    try:
        return datetime.fromtimestamp((now + int(parse_duration(text))) / 1000, UTC)
    except ValueError:
        wanted = "an RFC 3339 time or a duration such as 30m"
        raise CommandError(f"{flag} must be {wanted}, got {text!r}") from None
    except (OverflowError, OSError):
        raise CommandError(f"{flag} is too far away: {text!r}") from None

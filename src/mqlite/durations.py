"""Durations and points in time as callers write them, converted to milliseconds.

Numbers are seconds. Strings follow Go's duration syntax with the units `d` (24 hours)
and `w` (7 days) added.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from mqlite.errors import InvalidArgument
from mqlite.integers import MAX_INT64

Duration = timedelta | str | int | float
When = datetime | Duration

MAX_MS: Final = MAX_INT64

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_UNITS_MS: Final = {
    "ns": Decimal("0.000001"),
    "us": Decimal("0.001"),
    "µs": Decimal("0.001"),
    "μs": Decimal("0.001"),
    "ms": Decimal(1),
    "s": Decimal(1000),
    "m": Decimal(60_000),
    "h": Decimal(3_600_000),
    "d": Decimal(86_400_000),
    "w": Decimal(604_800_000),
}
_PIECE: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d|w)")
_SYNTAX: Final = "a timedelta, a number of seconds, or text such as '30s', '1.5h' or '1d12h'"
_DURATION: Final = f"is not a duration: {{!r}}; use {_SYNTAX}"
_WHEN: Final = (
    f"is neither a point in time nor a duration: {{!r}}; use a datetime with a time zone, {_SYNTAX}"
)


def parse_duration(text: str) -> Decimal:
    """Milliseconds in `text`, exactly.

    An optional sign, then one or more decimal numbers each with a unit of ns, us, ms, s,
    m, h, d or w; a bare `0` is allowed (source: Go's `time.ParseDuration`, plus d and w).
    Raises ValueError.
    """
    digits = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    if digits == "0":
        return Decimal(0)
    total = Decimal(0)
    at = 0
    while match := _PIECE.match(digits, at):
        total += Decimal(match[1]) * _UNITS_MS[match[2]]
        at = match.end()
    if at == 0 or at != len(digits):
        raise ValueError(f"invalid duration {text!r}")
    return -total if text.startswith("-") else total


def to_ms(value: Duration, field: str) -> int:
    """`value` in whole milliseconds, never negative.

    A positive value below one millisecond becomes 1, so that it never turns into "none".
    Raises InvalidArgument naming `field`.
    """
    if value.__class__ is int and 0 <= value <= MAX_MS // 1000:
        return value * 1000
    return _whole_ms(value, field, _DURATION)


def to_epoch_ms(value: When, field: str, now: int) -> int:
    """`value` as epoch milliseconds; a duration counts from `now`.

    Raises InvalidArgument naming `field`, also for a datetime without a time zone, and for a
    time too large to be stored.
    """
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidArgument(f"{field} must carry a time zone, got the naive {value!r}")
        return (value - _EPOCH) // timedelta(milliseconds=1)
    until = now + _whole_ms(value, field, _WHEN)
    if until > MAX_MS:
        raise InvalidArgument(f"{field} is too far ahead: {value!r}")
    return until


def _whole_ms(value: Duration, field: str, refusal: str) -> int:
    try:
        exact = _exact_ms(value)
    except ValueError:
        raise InvalidArgument(f"{field} {refusal.format(value)}") from None
    if exact < 0:
        raise InvalidArgument(f"{field} must not be negative, got {value!r}")
    if exact > MAX_MS:
        raise InvalidArgument(f"{field} is too long: {value!r}")
    return max(int(exact), 1) if exact > 0 else 0


def _exact_ms(value: Duration) -> Decimal:
    """Raises ValueError for what is no duration."""
    if isinstance(value, timedelta):
        return Decimal(value // timedelta(microseconds=1)) / 1000
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(value)
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        raise ValueError(value)
    return exact * 1000

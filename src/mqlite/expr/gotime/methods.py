"""The methods of time values that an expression may call (spec 11.6 and 11.7).

This table is the only way from a name in an expression to something callable on a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mqlite.expr.integers import MAX_INT, MIN_INT, wrap
from mqlite.expr.types import (
    BOOL,
    BYTES,
    DURATION,
    FLOAT,
    INT,
    INT64,
    LOCATION,
    MONTH,
    STRING,
    TIME,
    WEEKDAY,
    Signature,
    Type,
)
from mqlite.expr.values import Int64

from .clock import SECOND, ZERO_SECONDS, Duration, Month, Time, Weekday, days_from_civil
from .layout import RFC3339_NANO, STRING as STRING_LAYOUT, format_time
from .zones import LOCAL, UTC, Location

__all__ = ["Method", "find_method", "method_signature"]


@dataclass(frozen=True, slots=True)
class Method:
    """A method: what it takes and gives, and how it is done (the receiver comes first)."""

    signature: Signature
    call: Callable[..., Any]


def method_signature(receiver: Type, name: str) -> Signature | None:
    """The signature of a method of a known type."""
    method = _METHODS.get(receiver.kind, {}).get(name)
    return None if method is None else method.signature


def find_method(value: object, name: str) -> Method | None:
    """The method of a value at run time."""
    kind = _KINDS.get(type(value))
    return None if kind is None else _METHODS[kind].get(name)


_KINDS: dict[type, str] = {
    Time: "time",
    Duration: "duration",
    Month: "month",
    Weekday: "weekday",
    Location: "location",
}


def _method(call: Callable[..., Any], result: Type, *parameters: Type, results: int = 1) -> Method:
    return Method(Signature(parameters, result, results), call)


# -- time ----------------------------------------------------------------------------------


def _add_date(time: Time, years: int, months: int, days: int) -> Time:
    civil = time.civil()
    date = days_from_civil(civil.year + years, civil.month + months, civil.day + days)
    seconds = date * 86_400 + civil.hour * 3600 + civil.minute * 60 + civil.second
    return Time.from_local(seconds, time.nanosecond, time.zone)


def _since_zero(time: Time, step: Duration) -> int:
    """How far a time is beyond a multiple of a step, counted from the zero time."""
    return (time.ns - ZERO_SECONDS * SECOND) % step.ns


def _truncate_time(time: Time, step: Duration) -> Time:
    return time if step.ns <= 0 else Time(time.ns - _since_zero(time, step), time.zone)


def _round_time(time: Time, step: Duration) -> Time:
    if step.ns <= 0:
        return time
    beyond = _since_zero(time, step)
    shift = -beyond if beyond + beyond < step.ns else step.ns - beyond
    return Time(time.ns + shift, time.zone)


def _compare(time: Time, other: Time) -> int:
    return (time.ns > other.ns) - (time.ns < other.ns)


def _bytes_of_time(time: Time) -> bytes:
    return format_time(time, RFC3339_NANO).encode()


def _go_string(time: Time) -> str:
    civil = time.civil()
    parts = (civil.year, f"time.{Month(civil.month)}", civil.day, civil.hour, civil.minute)
    shown = ", ".join(str(part) for part in (*parts, civil.second, time.nanosecond))
    zone = {"UTC": "time.UTC", "Local": "time.Local"}.get(time.zone.name)
    return f"time.Date({shown}, {zone or f'time.Location({time.zone.name!r})'})"


_TIME_METHODS: dict[str, Method] = {
    "Year": _method(lambda t: wrap(t.civil().year), INT),
    "Month": _method(lambda t: Month(t.civil().month), MONTH),
    "Day": _method(lambda t: t.civil().day, INT),
    "Hour": _method(lambda t: t.civil().hour, INT),
    "Minute": _method(lambda t: t.civil().minute, INT),
    "Second": _method(lambda t: t.civil().second, INT),
    "Nanosecond": _method(lambda t: t.nanosecond, INT),
    "YearDay": _method(Time.year_day, INT),
    "Weekday": _method(Time.weekday, WEEKDAY),
    "ISOWeek": _method(Time.iso_year, INT, results=2),
    "Zone": _method(lambda t: t.zone.at(t.seconds).abbreviation, STRING, results=2),
    "Unix": _method(lambda t: Int64.wrapped(t.seconds), INT64),
    "UnixMilli": _method(lambda t: Int64.wrapped(t.ns // 1_000_000), INT64),
    "UnixMicro": _method(lambda t: Int64.wrapped(t.ns // 1_000), INT64),
    "UnixNano": _method(lambda t: Int64.wrapped(t.ns), INT64),
    "Before": _method(lambda t, other: t.ns < other.ns, BOOL, TIME),
    "After": _method(lambda t, other: t.ns > other.ns, BOOL, TIME),
    "Equal": _method(lambda t, other: t.ns == other.ns, BOOL, TIME),
    "Compare": _method(_compare, INT, TIME),
    "Add": _method(Time.plus, TIME, DURATION),
    "Sub": _method(Time.minus, DURATION, TIME),
    "AddDate": _method(_add_date, TIME, INT, INT, INT),
    "Truncate": _method(_truncate_time, TIME, DURATION),
    "Round": _method(_round_time, TIME, DURATION),
    "In": _method(lambda t, zone: Time(t.ns, zone), TIME, LOCATION),
    "UTC": _method(lambda t: Time(t.ns, UTC), TIME),
    "Local": _method(lambda t: Time(t.ns, LOCAL), TIME),
    "Location": _method(lambda t: t.zone, LOCATION),
    "Format": _method(format_time, STRING, STRING),
    "String": _method(lambda t: format_time(t, STRING_LAYOUT), STRING),
    "GoString": _method(_go_string, STRING),
    "IsZero": _method(lambda t: t.ns == ZERO_SECONDS * SECOND, BOOL),
    "IsDST": _method(lambda t: t.zone.at(t.seconds).is_dst, BOOL),
    "MarshalText": _method(_bytes_of_time, BYTES, results=2),
    # The binary forms have no use in a filter; they are there to be called.
    "MarshalBinary": _method(_bytes_of_time, BYTES, results=2),
    "GobEncode": _method(_bytes_of_time, BYTES, results=2),
    "MarshalJSON": _method(lambda t: b'"' + _bytes_of_time(t) + b'"', BYTES, results=2),
    "AppendFormat": _method(
        lambda t, head, layout: head + format_time(t, layout).encode(), BYTES, BYTES, STRING
    ),
    "Date": _method(lambda t: t.civil().year, INT, results=3),
    "Clock": _method(lambda t: t.civil().hour, INT, results=3),
}

# -- duration ------------------------------------------------------------------------------


def _toward_zero(ns: int, unit: int) -> int:
    return -(-ns // unit) if ns < 0 else ns // unit


def _truncate_duration(duration: Duration, step: Duration) -> Duration:
    if step.ns <= 0:
        return duration
    return Duration(_toward_zero(duration.ns, step.ns) * step.ns)


def _round_duration(duration: Duration, step: Duration) -> Duration:
    if step.ns <= 0:
        return duration
    rounded = (abs(duration.ns) * 2 + step.ns) // (2 * step.ns) * step.ns
    signed = -rounded if duration.ns < 0 else rounded
    return Duration(max(MIN_INT, min(MAX_INT, signed)))


def _in_units(unit: int) -> Callable[[Duration], float]:
    """Whole units and the rest are turned into floats apart, as the reference does."""

    def units(duration: Duration) -> float:
        whole = _toward_zero(duration.ns, unit)
        return float(whole) + float(duration.ns - whole * unit) / unit

    return units


_DURATION_METHODS: dict[str, Method] = {
    "Hours": _method(_in_units(3600 * SECOND), FLOAT),
    "Minutes": _method(_in_units(60 * SECOND), FLOAT),
    "Seconds": _method(_in_units(SECOND), FLOAT),
    "Milliseconds": _method(lambda d: Int64(_toward_zero(d.ns, 1_000_000)), INT64),
    "Microseconds": _method(lambda d: Int64(_toward_zero(d.ns, 1_000)), INT64),
    "Nanoseconds": _method(lambda d: Int64(d.ns), INT64),
    "Abs": _method(lambda d: Duration(min(abs(d.ns), MAX_INT)), DURATION),
    "Truncate": _method(_truncate_duration, DURATION, DURATION),
    "Round": _method(_round_duration, DURATION, DURATION),
    "String": _method(str, STRING),
}

_METHODS: dict[str, dict[str, Method]] = {
    "time": _TIME_METHODS,
    "duration": _DURATION_METHODS,
    "month": {"String": _method(str, STRING)},
    "weekday": {"String": _method(str, STRING)},
    "location": {"String": _method(str, STRING)},
}

"""Times, durations, months and weekdays (spec 11.1 and 11.7)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import total_ordering
from typing import NamedTuple

from mqlite.expr.integers import MAX_INT, MIN_INT, wrap

from .zones import UTC, Location

__all__ = [
    "MONTH_NAMES",
    "SECOND",
    "WEEKDAY_NAMES",
    "ZERO_SECONDS",
    "Civil",
    "Duration",
    "Month",
    "Time",
    "Weekday",
    "days_from_civil",
]

SECOND = 1_000_000_000
_DAY = 86_400
_UNITS = (("µs", 1_000), ("ms", 1_000_000), ("s", SECOND))

MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
WEEKDAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")

# 0001-01-01T00:00:00Z, the reference's zero time, in seconds since the epoch.
ZERO_SECONDS = -62_135_596_800


@total_ordering
class Duration:
    """A signed 64-bit number of nanoseconds; what does not fit wraps."""

    __slots__ = ("ns",)

    def __init__(self, ns: int) -> None:
        self.ns = wrap(ns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.ns == other.ns

    def __lt__(self, other: Duration) -> bool:
        return self.ns < other.ns

    def __hash__(self) -> int:
        return hash(("duration", self.ns))

    def __repr__(self) -> str:
        return f"Duration({self.ns})"

    def __str__(self) -> str:
        size = abs(self.ns)
        sign = "-" if self.ns < 0 else ""
        if size == 0:
            return "0s"
        if size < 1_000:
            return f"{sign}{size}ns"
        if size < SECOND:
            unit, scale = _UNITS[size >= 1_000_000]
            return f"{sign}{_decimal(size, scale)}{unit}"
        minutes, rest = divmod(size, 60 * SECOND)
        hours, minutes = divmod(minutes, 60)
        text = f"{_decimal(rest, SECOND)}s"
        if hours or minutes:
            text = f"{minutes}m{text}"
        return f"{sign}{hours}h{text}" if hours else sign + text


def _decimal(size: int, scale: int) -> str:
    whole, rest = divmod(size, scale)
    if not rest:
        return str(whole)
    return f"{whole}.{str(scale + rest)[1:].rstrip('0')}"


@dataclass(frozen=True, slots=True)
class Month:
    """A month, January = 1; a number of its own kind."""

    value: int

    def __str__(self) -> str:
        known = 1 <= self.value <= 12
        return MONTH_NAMES[self.value - 1] if known else f"%!Month({self.value})"


@dataclass(frozen=True, slots=True)
class Weekday:
    """A day of the week, Sunday = 0; a number of its own kind."""

    value: int

    def __str__(self) -> str:
        return WEEKDAY_NAMES[self.value] if self.value < 7 else f"%!Weekday({self.value})"


class Civil(NamedTuple):
    """A date and time of day as a calendar and a clock show it."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    days: int
    """Days since 1970-01-01."""


@total_ordering
class Time:
    """An instant, in nanoseconds since the epoch, and the zone to show it in.

    Compares as an instant; the zone counts for nothing.
    """

    __slots__ = ("ns", "zone")

    def __init__(self, ns: int, zone: Location = UTC) -> None:
        self.ns = ns
        self.zone = zone

    @classmethod
    def from_millis(cls, millis: int) -> Time:
        """The UTC time that is some milliseconds after the epoch."""
        return cls(millis * 1_000_000)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Time) and self.ns == other.ns

    def __lt__(self, other: Time) -> bool:
        return self.ns < other.ns

    def __hash__(self) -> int:
        return hash(("time", self.ns))

    def __repr__(self) -> str:
        return f"Time({self.ns}, {self.zone.name!r})"

    @property
    def seconds(self) -> int:
        return self.ns // SECOND

    @property
    def nanosecond(self) -> int:
        return self.ns % SECOND

    def plus(self, duration: Duration) -> Time:
        return Time(self.ns + duration.ns, self.zone)

    def minus(self, other: Time) -> Duration:
        """The time between, at the limits if it does not fit."""
        return Duration(max(MIN_INT, min(MAX_INT, self.ns - other.ns)))

    def civil(self) -> Civil:
        """What calendar and clock show in this time's zone."""
        local = self.seconds + self.zone.at(self.seconds).offset
        days, rest = divmod(local, _DAY)
        year, month, day = civil_from_days(days)
        return Civil(year, month, day, rest // 3600, rest // 60 % 60, rest % 60, days)

    def weekday(self) -> Weekday:
        return Weekday((self.civil().days + 4) % 7)

    def year_day(self) -> int:
        civil = self.civil()
        return civil.days - days_from_civil(civil.year, 1, 1) + 1

    def iso_year(self) -> int:
        """The year that the ISO week belongs to: that of the week's Thursday."""
        days = self.civil().days
        return civil_from_days(days - (days + 3) % 7 + 3)[0]

    @classmethod
    def from_local(cls, seconds: int, nanosecond: int, zone: Location) -> Time:
        """The time at which clocks in a zone show this (seconds as if the zone were UTC)."""
        return cls((seconds - zone.offset_of_local(seconds)) * SECOND + nanosecond, zone)


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar."""
    era, of_era = divmod(days + 719_468, 146_097)
    year_of_era = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a date; month and day may overflow."""
    carry, month0 = divmod(month - 1, 12)
    year += carry
    year -= month0 < 2
    era, of_era = divmod(year, 400)
    of_year = (153 * ((month0 + 10) % 12) + 2) // 5
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year + day - 719_469

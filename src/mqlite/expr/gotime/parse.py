"""Reading a time from text by a layout (spec 11.4 and 11.8)."""

from __future__ import annotations

import re

from .clock import MONTH_NAMES, SECOND, WEEKDAY_NAMES, Time, civil_from_days, days_from_civil
from .layout import ISO_ZONES, RFC3339, ZONE_FORMS, pieces
from .zones import LOCAL, UTC, Location, fixed

__all__ = ["DATE_LAYOUTS", "BadTime", "parse_time"]

DATE_LAYOUTS = (
    "2006-01-02",
    "15:04:05",
    "2006-01-02 15:04:05",
    RFC3339,
    "02 Jan 06 15:04 MST",
    "Monday, 02-Jan-06 15:04:05 MST",
    "Mon, 02 Jan 2006 15:04:05 MST",
)
"""What `date(s)` tries, in order."""

_FRACTION = re.compile(r"[.,][0-9]+")
_SIGNED_HOURS = re.compile(r"[+-][0-9]+")
_ABBREVIATION = re.compile(r"ChST|MeST|[A-Z]{3,6}")
# Far enough from any date for summer time to have begun, or ended.
_HALF_A_YEAR = 183 * 86_400


class BadTime(ValueError):
    """The text does not fit the layout."""


def parse_time(text: str, layout: str, zone: Location | None = None) -> Time:
    """The time a text gives; without a zone in the text it is one of `zone`, UTC by default.

    Raises BadTime if the text does not fit the layout or is no date of the calendar.
    """
    reader = _Reader(text)
    found = pieces(layout)
    for index, (plain, piece) in enumerate(found):
        reader.skip(plain)
        if piece:
            reader.read(piece)
        if piece in ("05", "5") and not found[index + 1][1].startswith((".", ",")):
            # A fraction may follow the seconds although the layout has none.
            reader.read_fraction(".9")
    if reader.rest:
        raise BadTime("extra text")
    return reader.time(zone or UTC, zone or LOCAL)


class _Reader:
    """What has been read so far, and what is left to read."""

    def __init__(self, text: str) -> None:
        self.rest = text
        self.year = 0
        self.month: int | None = None
        self.day: int | None = None
        self.year_day: int | None = None
        self.hour = self.minute = self.second = self.nanosecond = 0
        self.half: str | None = None
        self.utc = False
        self.offset: int | None = None
        self.abbreviation = ""

    # -- reading ---------------------------------------------------------------------------

    def skip(self, plain: str) -> None:
        """Pass plain text of the layout; a run of blanks stands for any run of blanks."""
        for part in re.findall(r" +|[^ ]+", plain):
            if part[0] == " ":
                if self.rest and self.rest[0] != " ":
                    raise BadTime("blank expected")
                self.rest = self.rest.lstrip(" ")
            elif self.rest.startswith(part):
                self.rest = self.rest[len(part) :]
            else:
                raise BadTime("text differs")

    def read(self, piece: str) -> None:
        if piece[0] in "-Z":
            self.read_offset(piece)
        elif piece[0] in ".,":
            self.read_fraction(piece)
        elif piece in ("January", "Jan"):
            self.month = 1 + self.name(MONTH_NAMES, short=piece == "Jan")
        elif piece in ("Monday", "Mon"):
            self.name(WEEKDAY_NAMES, short=piece == "Mon")
        elif piece == "MST":
            self.read_abbreviation()
        elif piece in ("PM", "pm"):
            self.read_half(piece)
        else:
            self.read_number(piece)

    def take(self, pattern: str) -> str:
        found = re.match(pattern, self.rest)
        if found is None:
            raise BadTime("digits expected")
        self.rest = self.rest[found.end() :]
        return found.group()

    def number(self, pattern: str, least: int, most: int) -> int:
        value = int(self.take(pattern))
        if not least <= value <= most:
            raise BadTime("out of range")
        return value

    def read_number(self, piece: str) -> None:
        digits = "[0-9]{2}" if piece[0] == "0" else "[0-9]{1,2}"
        match piece:
            case "2006":
                self.year = int(self.take("[0-9]{4}"))
            case "06":
                year = int(self.take("[0-9]{2}"))
                self.year = year + (1900 if year >= 69 else 2000)
            case "1" | "01":
                self.month = self.number(digits, 1, 12)
            case "2" | "_2" | "02":
                if piece == "_2":
                    self.rest = self.rest.removeprefix(" ")
                self.day = int(self.take(digits))
            case "002" | "__2":
                if piece == "__2":
                    self.rest = re.sub("^ {1,2}", "", self.rest)
                self.year_day = int(self.take("[0-9]{3}" if piece == "002" else "[0-9]{1,3}"))
            case "15":
                self.hour = self.number("[0-9]{1,2}", 0, 23)
            case "3" | "03":
                self.hour = self.number(digits, 0, 12)
            case "4" | "04":
                self.minute = self.number(digits, 0, 59)
            case _:
                self.second = self.number(digits, 0, 59)

    def read_fraction(self, piece: str) -> None:
        """A fraction: zeros ask for so many digits, nines take what there is, if anything."""
        if piece[1] == "9" and not _FRACTION.match(self.rest):
            return
        pattern = f"[.,][0-9]{{{len(piece) - 1}}}" if piece[1] == "0" else "[.,][0-9]+"
        self.nanosecond = int(self.take(pattern)[1:10].ljust(9, "0"))

    def name(self, names: tuple[str, ...], *, short: bool) -> int:
        for index, name in enumerate(names):
            wanted = name[:3] if short else name
            if self.rest[: len(wanted)].lower() == wanted.lower():
                self.rest = self.rest[len(wanted) :]
                return index
        raise BadTime("name expected")

    def read_half(self, piece: str) -> None:
        half = self.take("[AP]M" if piece == "PM" else "[ap]m")
        self.half = half.lower()

    def read_offset(self, piece: str) -> None:
        if piece in ISO_ZONES and self.rest.startswith("Z"):
            self.rest = self.rest[1:]
            self.utc = True
            return
        count, separator = ZONE_FORMS[piece[1:]]
        text = self.take("[+-]" + separator.join(["[0-9]{2}"] * count))
        parts = [int(part) for part in re.findall("[0-9]{2}", text)] + [0, 0]
        hours, minutes, seconds = parts[:3]
        if hours > 24 or minutes > 60 or seconds > 60:
            raise BadTime("zone offset out of range")
        offset = hours * 3600 + minutes * 60 + seconds
        self.offset = -offset if text[0] == "-" else offset

    def read_abbreviation(self) -> None:
        if self.rest.startswith("UTC"):
            self.rest = self.rest[3:]
            self.utc = True
            return
        self.abbreviation = self.rest[: _abbreviation_length(self.rest)]
        if not self.abbreviation:
            raise BadTime("zone expected")
        self.rest = self.rest[len(self.abbreviation) :]

    # -- the result ------------------------------------------------------------------------

    def time(self, default: Location, local: Location) -> Time:
        seconds = self.local_seconds()
        if self.utc:
            return Time.from_local(seconds, self.nanosecond, UTC)
        if self.offset is not None:
            return self.with_offset(seconds, self.offset, local)
        if self.abbreviation:
            return self.with_abbreviation(seconds, local)
        return Time.from_local(seconds, self.nanosecond, default)

    def local_seconds(self) -> int:
        if self.half == "pm" and self.hour < 12:
            self.hour += 12
        elif self.half == "am" and self.hour == 12:
            self.hour = 0
        days = self.days()
        return days * 86_400 + self.hour * 3600 + self.minute * 60 + self.second

    def days(self) -> int:
        """The day, which must be one of its month or year."""
        if self.year_day is not None:
            return self.days_of_year(self.year_day)
        month, day = self.month or 1, 1 if self.day is None else self.day
        days = days_from_civil(self.year, month, day)
        first, beyond = (days_from_civil(self.year, month + later, 1) for later in (0, 1))
        if not first <= days < beyond:
            raise BadTime("day out of range")
        return days

    def days_of_year(self, year_day: int) -> int:
        """The day, which must also be of the month and the number that were read, if they were."""
        days = days_from_civil(self.year, 1, year_day)
        year, month, day = civil_from_days(days)
        if (year, month, day) != (self.year, self.month or month, self.day or day):
            raise BadTime("day-of-year does not match")
        return days

    def with_offset(self, seconds: int, offset: int, local: Location) -> Time:
        seconds -= offset
        at = local.at(seconds)
        same = at.offset == offset and self.abbreviation in ("", at.abbreviation)
        zone = local if same else fixed(self.abbreviation, offset)
        return Time(seconds * SECOND + self.nanosecond, zone)

    def with_abbreviation(self, seconds: int, local: Location) -> Time:
        for probe in (seconds, seconds - _HALF_A_YEAR, seconds + _HALF_A_YEAR):
            at = local.at(probe)
            if at.abbreviation == self.abbreviation:
                return Time((seconds - at.offset) * SECOND + self.nanosecond, local)
        hours = self.abbreviation[3:] if self.abbreviation.startswith("GMT") else ""
        zone = fixed(self.abbreviation, int(hours or 0) * 3600)
        return Time.from_local(seconds, self.nanosecond, zone)


def _abbreviation_length(text: str) -> int:
    """How much of a text is a zone abbreviation, by the reference's rules of thumb."""
    if text.startswith("GMT"):
        return 3 + _signed_hours_length(text[3:])
    if text.startswith(("+", "-")):
        return _signed_hours_length(text)
    found = _ABBREVIATION.match(text)
    if found is None:
        return 0
    letters = found.group()
    fits = {
        3: True,
        4: letters[3:] == "T" or letters in ("WITA", "ChST", "MeST"),
        5: letters[4:] == "T",
    }
    return len(letters) if fits.get(len(letters), False) else 0


def _signed_hours_length(text: str) -> int:
    found = _SIGNED_HOURS.match(text)
    if found is None or int(found.group()[1:]) > 23:
        return 0
    return found.end()

"""Layouts: dates written the way the moment Mon Jan 2 15:04:05 2006 -0700 would be (spec 11.8)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from .clock import MONTH_NAMES, Civil, Time

__all__ = ["ISO_ZONES", "RFC3339", "RFC3339_NANO", "STRING", "ZONE_FORMS", "format_time", "pieces"]

RFC3339 = "2006-01-02T15:04:05Z07:00"
RFC3339_NANO = "2006-01-02T15:04:05.999999999Z07:00"
STRING = "2006-01-02 15:04:05.999999999 -0700 MST"

# Number of offset parts and the separator, by the form without its sign or Z.
ZONE_FORMS = {
    "0700": (2, ""), "07:00": (2, ":"), "07": (1, ""),
    "070000": (3, ""), "07:00:00": (3, ":"),
}  # fmt: skip
ISO_ZONES = frozenset("Z" + form for form in ZONE_FORMS)

# In the order in which they win. `Jan` and `Mon` are plain text before a lowercase letter.
_PIECE = re.compile(
    r"January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST|2006|__2|002|_2006|_2"
    r"|Z070000|Z07:00:00|Z0700|Z07:00|Z07|-070000|-07:00:00|-0700|-07:00|-07"
    r"|01|02|03|04|05|06|15|PM|pm|[.,](?:0+|9+)(?![0-9])|[12345]"
)


def pieces(layout: str) -> tuple[tuple[str, str], ...]:
    """A layout as (plain text, piece) pairs; the last piece is empty."""
    # A layout may come from a message; only what a person would write is worth keeping.
    return _known_pieces(layout) if len(layout) <= 64 else tuple(_split(layout))


@lru_cache(maxsize=256)
def _known_pieces(layout: str) -> tuple[tuple[str, str], ...]:
    return tuple(_split(layout))


def _split(layout: str) -> Iterator[tuple[str, str]]:
    plain_from = 0
    for found in _PIECE.finditer(layout):
        start, piece = found.start(), found.group()
        if piece == "_2006":
            # A blank-padded day is not meant here: it is an underscore and the year.
            start, piece = start + 1, "2006"
        yield layout[plain_from:start], piece
        plain_from = found.end()
    yield layout[plain_from:], ""


def format_time(time: Time, layout: str) -> str:
    """A time in its own zone, written as the layout says."""
    civil = time.civil()
    parts: list[str] = []
    for plain, piece in pieces(layout):
        parts.append(plain)
        if piece:
            parts.append(_write(time, civil, piece))
    return "".join(parts)


def _write(time: Time, civil: Civil, piece: str) -> str:
    if piece[0] in "-Z":
        return _write_zone(time, piece)
    if piece[0] in ".,":
        return _write_fraction(time, piece)
    if piece in ("2006", "06"):
        year = f"{abs(civil.year):04d}"
        return ("-" if civil.year < 0 else "") + year if piece == "2006" else year[-2:]
    if piece in ("002", "__2"):
        return f"{time.year_day():03d}" if piece == "002" else f"{time.year_day():3d}"
    if piece == "MST":
        return _abbreviation(time)
    return _WRITERS[piece](time, civil)


_WRITERS: dict[str, Callable[[Time, Civil], str]] = {
    "January": lambda time, civil: MONTH_NAMES[civil.month - 1],
    "Jan": lambda time, civil: MONTH_NAMES[civil.month - 1][:3],
    "01": lambda time, civil: f"{civil.month:02d}",
    "1": lambda time, civil: str(civil.month),
    "Monday": lambda time, civil: str(time.weekday()),
    "Mon": lambda time, civil: str(time.weekday())[:3],
    "02": lambda time, civil: f"{civil.day:02d}",
    "_2": lambda time, civil: f"{civil.day:2d}",
    "2": lambda time, civil: str(civil.day),
    "15": lambda time, civil: f"{civil.hour:02d}",
    "03": lambda time, civil: f"{civil.hour % 12 or 12:02d}",
    "3": lambda time, civil: str(civil.hour % 12 or 12),
    "04": lambda time, civil: f"{civil.minute:02d}",
    "4": lambda time, civil: str(civil.minute),
    "05": lambda time, civil: f"{civil.second:02d}",
    "5": lambda time, civil: str(civil.second),
    "PM": lambda time, civil: "PM" if civil.hour >= 12 else "AM",
    "pm": lambda time, civil: "pm" if civil.hour >= 12 else "am",
}


def _write_fraction(time: Time, piece: str) -> str:
    digits = f"{time.nanosecond:09d}"[: len(piece) - 1]
    if piece[1] == "0":
        return piece[0] + digits.ljust(len(piece) - 1, "0")
    digits = digits.rstrip("0")
    return piece[0] + digits if digits else ""


def _write_zone(time: Time, piece: str) -> str:
    offset = time.zone.at(time.seconds).offset
    if piece in ISO_ZONES and offset == 0:
        return "Z"
    return offset_text(offset, piece[1:])


def offset_text(offset: int, form: str) -> str:
    """A signed offset from UTC with as many parts as a form has."""
    size = abs(offset)
    count, separator = ZONE_FORMS[form]
    parts = (size // 3600, size // 60 % 60, size % 60)[:count]
    sign = "-" if offset < 0 else "+"
    return sign + separator.join(f"{part:02d}" for part in parts)


def _abbreviation(time: Time) -> str:
    zone = time.zone.at(time.seconds)
    if zone.abbreviation:
        return zone.abbreviation
    return offset_text(zone.offset, "0700")

"""Zones: how far from UTC a place is at an instant, and what it calls its time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC as DATETIME_UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

__all__ = ["LOCAL", "UTC", "Location", "ZoneAt", "fixed", "load"]

# `datetime` reaches from year 1 to 9999. Beyond, a zone is taken to be as it is at the edge.
_EARLIEST = -62_100_000_000
_LATEST = 253_370_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=DATETIME_UTC)


class ZoneAt(NamedTuple):
    """A zone at one instant."""

    offset: int
    abbreviation: str
    is_dst: bool


class Location:
    """A zone by name; `zone_at` gives what holds at some seconds since the epoch."""

    __slots__ = ("_zone_at", "name")

    def __init__(self, name: str, zone_at: Callable[[int], ZoneAt]) -> None:
        self.name = name
        self._zone_at = zone_at

    def __str__(self) -> str:
        return self.name

    def at(self, seconds: int) -> ZoneAt:
        return self._zone_at(seconds)

    def offset_of_local(self, seconds: int) -> int:
        """The offset that holds when local clocks show this time.

        Where clocks are set back the earlier reading is meant; where they are set forward, the
        offset before the gap.
        """
        guess = self.at(seconds).offset
        return self.at(seconds - guess).offset


def fixed(name: str, offset: int) -> Location:
    """A zone that is always the same distance from UTC."""
    always = ZoneAt(offset, name, False)
    return Location(name, lambda seconds: always)


UTC = fixed("UTC", 0)


def _reader(zone: tzinfo | None) -> Callable[[int], ZoneAt]:
    def zone_at(seconds: int) -> ZoneAt:
        within = max(_EARLIEST, min(_LATEST, seconds))
        moment = (_EPOCH + timedelta(seconds=within)).astimezone(zone)
        offset = moment.utcoffset() or timedelta()
        abbreviation = moment.tzname() or ""
        return ZoneAt(int(offset.total_seconds()), abbreviation, bool(moment.dst()))

    return zone_at


LOCAL = Location("Local", _reader(None))


@lru_cache(maxsize=256)
def load(name: str) -> Location:
    """The zone of an IANA name; raises LookupError if there is none of that name."""
    if name in ("", "UTC"):
        return UTC
    if name == "Local":
        return LOCAL
    try:
        return Location(name, _reader(ZoneInfo(name)))
    except (OSError, ValueError):
        raise LookupError(name) from None

"""Durations from text: the language's own spelling and its extension by days and weeks."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mqlite.expr.integers import MAX_INT, MIN_INT, truncate

from .clock import Duration

__all__ = ["DURATION_UNITS", "parse_duration", "parse_duration_units"]

_NANOS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
DURATION_UNITS: Mapping[str, int] = {
    **_NANOS,
    "d": 86_400_000_000_000,
    "w": 604_800_000_000_000,
}

# The micro sign has two code points; the language itself takes both.
_STOCK_UNITS = {**_NANOS, "μs": 1_000}
_STOCK_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)(ns|us|µs|ms|s|m|h|d|w)")


def parse_duration(text: str) -> Duration:
    """A duration as the language spells it, like `1h30m`; raises ValueError.

    Exact to the nanosecond; what does not fit is refused.
    """
    sign, rest = _signed(text)
    if rest == "0":
        return Duration(0)
    total = 0
    at = 0
    while at < len(rest):
        part = _STOCK_PART.match(rest, at)
        if part is None or not (part[1] or part[2]):
            raise ValueError(text)
        scale = _STOCK_UNITS[part[3]]
        fraction = part[2] or ""
        total += int(part[1] or 0) * scale + int(fraction or 0) * scale // 10 ** len(fraction)
        at = part.end()
    if not rest or not MIN_INT <= sign * total <= MAX_INT:
        raise ValueError(text)
    return Duration(sign * total)


def parse_duration_units(text: str) -> Duration:
    """A duration with the units d and w too (spec 11.3); raises ValueError.

    Each part is computed in floating point and cut to whole nanoseconds; the sum wraps.
    """
    sign, rest = _signed(text)
    if rest == "0":
        return Duration(0)
    total = 0
    at = 0
    while at < len(rest):
        part = _PART.match(rest, at)
        if part is None:
            raise ValueError(text)
        total += truncate(float(part[1]) * DURATION_UNITS[part[2]])
        at = part.end()
    if not rest:
        raise ValueError(text)
    return Duration(sign * total)


def _signed(text: str) -> tuple[int, str]:
    sign = -1 if text.startswith("-") else 1
    return sign, text[1:] if text.startswith(("+", "-")) else text

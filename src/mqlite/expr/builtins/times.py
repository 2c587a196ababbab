"""Builtins on time."""

from __future__ import annotations

import time

from mqlite.expr.budget import Budget
from mqlite.expr.errors import Fault
from mqlite.expr.gotime import (
    DATE_LAYOUTS,
    LOCAL,
    BadTime,
    Duration,
    Location,
    Time,
    load,
    parse_duration,
    parse_time,
)
from mqlite.expr.operator_types import Refused
from mqlite.expr.text import quote
from mqlite.expr.types import DURATION, LOCATION, STRING, TIME, Type
from mqlite.expr.values import Value

from .arguments import need_string
from .registry import builtin, exactly, judged, signature

# What parsing a date, and looking for a zone, costs in work: far more than a visit.
_PARSING_COST = 20
_ZONE_COST = 50


def _judge_now(types: list[Type]) -> Type:
    exactly(0, types)
    return TIME


@judged("now", _judge_now)
def now(budget: Budget) -> Time:
    """The time by the wall clock, in the host's zone."""
    return Time(time.time_ns(), LOCAL)


@builtin("duration", signature(STRING, gives=DURATION))
def duration(budget: Budget, text: Value) -> Duration:
    """The duration a text gives, like `1h30m`."""
    text = need_string(text)
    budget.visit(len(text))
    try:
        return parse_duration(text)
    except ValueError:
        raise Fault(f"time: invalid duration {quote(text)}") from None


@builtin("timezone", signature(STRING, gives=LOCATION))
def timezone(budget: Budget, name: Value) -> Location:
    """The zone of an IANA name."""
    budget.visit(_ZONE_COST)
    return _zone(need_string(name))


def _zone(name: str) -> Location:
    try:
        return load(name)
    except LookupError:
        raise Fault(f"unknown time zone {name}") from None


def _judge_date(types: list[Type]) -> Type:
    if not types:
        raise Refused("invalid number of arguments (expected at least 1, got 0)")
    if len(types) > 3:
        raise Refused(f"invalid number of arguments (expected at most 3, got {len(types)})")
    return TIME


@judged("date", _judge_date)
def date(budget: Budget, first: Value, *arguments: Value) -> Time:
    """The time a text gives, by a layout or by those that are tried without one."""
    zone: Location | None = None
    if isinstance(first, Location):
        if not arguments:
            raise Fault("runtime error: index out of range [0] with length 0")
        zone, first, arguments = first, arguments[0], arguments[1:]
    text = need_string(first)
    others = list(map(need_string, arguments))
    if len(others) == 2:
        zone = _zone(others[1])
    budget.visit(_PARSING_COST + len(text) + sum(map(len, others)))
    for layout in others[:1] or DATE_LAYOUTS:
        try:
            return parse_time(text, layout, zone)
        except BadTime:
            continue
    if others:
        raise Fault(f"parsing time {quote(text)} as {quote(others[0])}: cannot parse")
    raise Fault(f"invalid date {text}")

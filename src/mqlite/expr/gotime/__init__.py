"""Times and durations with the semantics of Go's `time` package, as far as expressions see them."""

from .clock import Duration, Month, Time, Weekday
from .duration_text import DURATION_UNITS, parse_duration, parse_duration_units
from .methods import Method, find_method, method_signature
from .parse import DATE_LAYOUTS, BadTime, parse_time
from .zones import LOCAL, UTC, Location, load

__all__ = [
    "DATE_LAYOUTS",
    "DURATION_UNITS",
    "LOCAL",
    "UTC",
    "BadTime",
    "Duration",
    "Location",
    "Method",
    "Month",
    "Time",
    "Weekday",
    "find_method",
    "load",
    "method_signature",
    "parse_duration",
    "parse_duration_units",
    "parse_time",
]

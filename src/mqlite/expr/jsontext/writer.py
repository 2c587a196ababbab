"""Values to JSON text (spec 13.2)."""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence

from mqlite.expr.budget import Budget
from mqlite.expr.errors import Fault
from mqlite.expr.gotime import Duration, Location, Month, Time, Weekday
from mqlite.expr.gotime.layout import RFC3339_NANO, format_time
from mqlite.expr.nested import Opened, write
from mqlite.expr.text import to_bytes
from mqlite.expr.textform import digits_of, exponent_digits, float_text, plain_digits
from mqlite.expr.values import Value, go_name, is_array, is_nil

__all__ = ["to_json"]

_ESCAPED = re.compile('["\\\\<>&\u2028\u2029\x00-\x1f\ud800-\udfff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


def to_json(budget: Budget, value: Value) -> str:
    """JSON text, indented by two blanks; raises Fault for what JSON cannot say."""
    return write(budget, value, _opened, _scalar)


def _opened(item: Value, depth: int) -> Opened | None:
    if isinstance(item, dict):
        if not item:
            return Opened(iter(()), "{}")
        return Opened(_object_members(item, depth), _indent(depth) + "}")
    if is_array(item) and not isinstance(item, bytes) and not is_nil(item):
        if not len(item):
            return Opened(iter(()), "[]")
        return Opened(_array_members(item, depth), _indent(depth) + "]")
    return None


def _object_members(item: dict[str, Value], depth: int) -> Iterator[tuple[str, Value]]:
    indent = _indent(depth + 1)
    lead = "{"
    for key in sorted(item, key=to_bytes):
        yield f"{lead}{indent}{_quoted(key)}: ", item[key]
        lead = ","


def _array_members(item: Sequence[Value], depth: int) -> Iterator[tuple[str, Value]]:
    indent = _indent(depth + 1)
    lead = "["
    for element in item:
        yield lead + indent, element
        lead = ","


def _indent(depth: int) -> str:
    return "\n" + "  " * depth


def _scalar(value: Value) -> str:
    if is_nil(value):
        return "null"
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return int.__repr__(value)
        case float():
            return _float(value)
        case str():
            return _quoted(value)
        case bytes():
            return f'"{b64encode(value).decode()}"'
        case Duration():
            return str(value.ns)
        case Month() | Weekday():
            return str(value.value)
        case Time():
            return _time(value)
        case Location():
            return "{}"
    raise Fault(f"json: unsupported type: {go_name(value)}")


def _time(value: Time) -> str:
    if not 0 <= value.civil().year <= 9999:
        raise Fault("json: Time.MarshalJSON: year outside of range [0,9999]")
    return f'"{format_time(value, RFC3339_NANO)}"'


def _float(number: float) -> str:
    if not math.isfinite(number):
        raise Fault(f"json: unsupported value: {float_text(number)}")
    digits, exponent = digits_of(number)
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    if number == 0 or 1e-6 <= abs(number) < 1e21:
        return sign + plain_digits(digits, exponent)
    return f"{sign}{exponent_digits(digits)}e{exponent:+d}"


def _quoted(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    char = found.group()
    if "\ud800" <= char <= "\udfff":
        return "\\ufffd"
    return _SHORT.get(char) or f"\\u{ord(char):04x}"

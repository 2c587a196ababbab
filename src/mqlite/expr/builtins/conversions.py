"""Builtins that convert and inspect values."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode

from mqlite.expr.access import fetch
from mqlite.expr.budget import Budget
from mqlite.expr.errors import Fault
from mqlite.expr.gotime import Duration, Month, Weekday
from mqlite.expr.integers import MAX_INT, MIN_INT, truncate
from mqlite.expr.jsontext import from_json, to_json
from mqlite.expr.operator_types import Refused
from mqlite.expr.text import from_bytes, to_bytes
from mqlite.expr.textform import text_of
from mqlite.expr.types import ANY, FLOAT, INT, STRING, UNKNOWN, Type
from mqlite.expr.values import (
    AnyMap,
    Environment,
    FunctionValue,
    Uint8,
    Value,
    go_name,
    is_array,
    is_int,
    is_map,
    is_nil,
    is_number,
    key_of,
)

from .arguments import need_string
from .registry import builtin, exactly, go_kind, judged, shown, signature

_INTEGER = re.compile(r"([+-]?)(?=[0-9])0*([0-9]*)")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:_[0-9]+)*\.?(?:[0-9]+(?:_[0-9]+)*)?|\.[0-9]+(?:_[0-9]+)*)(?:[eE][+-]?[0-9]+)?")  # fmt: skip
_HEXADECIMAL = re.compile(r"([+-]?)0[xX]_?([0-9a-fA-F_]*)\.?([0-9a-fA-F_]*)[pP]([+-]?[0-9]+)")
_NAMED_FLOAT = re.compile(r"[+-]?(?:inf|infinity)|nan", re.IGNORECASE)

# Few characters of JSON may make a value.
_JSON_READ_PER_VISIT = 4

_SIZED = ("array", "map", "string", "unknown")
_CONVERTIBLE = ("integer", "float", "string", "unknown")


def _judge_one(name: str, kinds: tuple[str, ...], result: Type, types: list[Type]) -> Type:
    exactly(1, types)
    if go_kind(types[0]) not in kinds:
        raise Refused(f"invalid argument for {name} (type {shown(types[0])})")
    return result


@judged("len", lambda types: _judge_one("len", _SIZED, INT, types))
def length(budget: Budget, value: Value) -> int:
    """The number of characters of a string, or of elements."""
    if isinstance(value, str) or is_array(value) or is_map(value):
        return len(value)
    raise Fault(f"invalid argument for len (type {go_name(value)})")


@builtin("type", signature(ANY, gives=STRING))
def type_name(budget: Budget, value: Value) -> str:
    """What kind of value this is, in the language's own words."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "uint" if type(value) is Uint8 else "int"
    if isinstance(value, float):
        return "float"
    if is_array(value):
        return "array"
    if is_map(value):
        return "map"
    if isinstance(value, FunctionValue):
        return "func"
    return go_name(value).removeprefix("*")


@judged("get", lambda types: UNKNOWN)
def get(budget: Budget, base: Value, key: Value) -> Value:
    """What base[key] would be, or nil where there is no such thing."""
    if is_nil(base):
        return None
    if isinstance(base, Environment):
        return base.read(key) if base.has(key) else None
    if isinstance(base, dict):
        return base.get("" if key is None else need_string(key))
    if isinstance(base, AnyMap):
        found = base.entries.get(key_of(key))
        return None if found is None else found[1]
    if is_array(base) or isinstance(base, str):
        try:
            return fetch(budget, base, key)
        except Fault:
            if not is_number(key):
                raise
    return None


@judged("int", lambda types: _judge_one("int", _CONVERTIBLE, INT, types))
def to_integer(budget: Budget, value: Value) -> int:
    """A number, or the text of a decimal one, as an integer."""
    if isinstance(value, str):
        budget.read(value)
    if is_int(value):
        return int(value)
    match value:
        case float():
            return truncate(value)
        case str() if found := _INTEGER.fullmatch(value):
            # Digits that cannot matter are cut off before they are converted.
            number = int(found[1] + found[2][:20].rjust(1, "0"))
            if MIN_INT <= number <= MAX_INT:
                return number
        case Duration():
            return value.ns
        case Month() | Weekday():
            return value.value
        case None:
            raise Fault("reflect: call of reflect.Value.Type on zero Value")
    raise Fault(f"invalid operation: int({_named(value)})")


@judged("float", lambda types: _judge_one("float", _CONVERTIBLE, FLOAT, types))
def to_floating(budget: Budget, value: Value) -> float:
    """A number, or the text of one, as a float."""
    if isinstance(value, str):
        budget.build(len(value))
    if is_number(value):
        return float(value)
    number = _parse_float(value) if isinstance(value, str) else None
    if number is None:
        raise Fault(f"invalid operation: float({_named(value)})")
    return number


def _named(value: Value) -> str:
    return value if isinstance(value, str) else go_name(value)


def _parse_float(text: str) -> float | None:
    """A float from text; None if it is none, or too large for one."""
    if _NAMED_FLOAT.fullmatch(text):
        return float(text)
    if found := _HEXADECIMAL.fullmatch(text):
        return _parse_hexadecimal(found)
    if not _DECIMAL.fullmatch(text):
        return None
    number = float(text)
    return None if number in (float("inf"), float("-inf")) else number


def _parse_hexadecimal(found: re.Match[str]) -> float | None:
    sign, whole, fraction, exponent = found.groups()
    digits = (whole + fraction).replace("_", "")
    if not digits or "__" in whole + fraction or (whole + fraction).endswith("_"):
        return None
    try:
        return float.fromhex(f"{sign}0x{whole}.{fraction}p{exponent}".replace("_", ""))
    except OverflowError:
        return None


@builtin("string", signature(ANY, gives=STRING))
def to_string(budget: Budget, value: Value) -> str:
    """The text of a value."""
    return text_of(budget, value)


@builtin("toJSON", signature(ANY, gives=STRING))
def to_json_text(budget: Budget, value: Value) -> str:
    """The value as JSON text."""
    return to_json(budget, value)


@builtin("fromJSON", signature(STRING, gives=ANY))
def from_json_text(budget: Budget, text: Value) -> Value:
    """The value of a JSON text."""
    text = need_string(text)
    budget.visit(len(text) // _JSON_READ_PER_VISIT)
    return from_json(text)


@builtin("toBase64", signature(STRING, gives=STRING))
def to_base64(budget: Budget, text: Value) -> str:
    """The bytes of a string in base64."""
    data = to_bytes(need_string(text))
    budget.build(len(data))
    return b64encode(data).decode()


@builtin("fromBase64", signature(STRING, gives=STRING))
def from_base64(budget: Budget, text: Value) -> str:
    """The bytes that base64 stands for, as a string."""
    text = need_string(text)
    budget.build(len(text))
    data = text.replace("\r", "").replace("\n", "")
    if not _BASE64.fullmatch(data):
        raise Fault("illegal base64 data")
    return from_bytes(b64decode(data))

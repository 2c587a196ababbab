"""How `string()` and error messages write a value (spec 13.1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat

from .budget import Budget
from .gotime import Time, find_method
from .nested import Opened, write
from .values import AnyMap, Environment, FunctionValue, Value, go_name, is_array, is_map

__all__ = ["digits_of", "float_text", "text_of"]


def text_of(budget: Budget, value: Value) -> str:
    """The text of a value; strings inside others are not quoted."""
    if type(value) is str:
        return value

    def opened(item: Value, depth: int) -> Opened | None:
        if is_array(item):
            return _opened_array(item)
        if is_map(item):
            return _opened_map(budget, item)
        return _opened_struct(item) if isinstance(item, Environment) else None

    return write(budget, value, opened, _plain)


def _opened_array(items: Sequence[Value]) -> Opened:
    leads = chain("[", repeat(" "))
    return Opened(zip(leads, items, strict=False), "]" if len(items) else "[]")


def _opened_map(budget: Budget, value: Value) -> Opened:
    """A map's keys and values, sorted by key."""
    if isinstance(value, AnyMap):
        entries = [(text_of(budget, key), held) for key, held in value.entries.values()]
    else:
        entries = list(value.items())
    entries.sort(key=lambda entry: entry[0])
    leads = chain(["map["], repeat(" "))
    members = ((f"{lead}{key}:", held) for lead, (key, held) in zip(leads, entries, strict=False))
    return Opened(members, "]" if entries else "map[]")


def _opened_struct(value: Environment) -> Opened:
    leads = chain("{", repeat(" "))
    members = (
        (lead, value.values[name]) for lead, name in zip(leads, value.fields.values(), strict=False)
    )
    return Opened(members, "}" if value.fields else "{}")


def _plain(value: Value) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, FunctionValue):
        return go_name(value)
    if isinstance(value, Time):
        method = find_method(value, "String")
        return "" if method is None else str(method.call(value))
    return str(value)


def digits_of(number: float) -> tuple[str, int]:
    """The shortest digits that name a finite float's size, and the exponent of the first."""
    mantissa, _, exponent = f"{abs(number)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    shift = len(whole + fraction) - len(digits)
    return digits.rstrip("0") or "0", int(exponent or 0) + len(whole) - 1 - shift if digits else 0


def float_text(number: float) -> str:
    """A float with as many digits as needed; exponent form below 1e-4 and from 1e6 on."""
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "+Inf" if number > 0 else "-Inf"
    digits, exponent = digits_of(number)
    sign = "-" if str(number)[0] == "-" else ""
    if -4 <= exponent <= 5:
        return sign + plain_digits(digits, exponent)
    return f"{sign}{exponent_digits(digits)}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def plain_digits(digits: str, exponent: int) -> str:
    """Digits in plain notation, without a point if they are whole."""
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{whole}.{fraction}" if fraction else whole


def exponent_digits(digits: str) -> str:
    """Digits as the part before an exponent."""
    return f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits

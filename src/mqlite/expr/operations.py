"""Operations that only operators make: what is left besides arithmetic, order and access."""

from __future__ import annotations

from collections.abc import Set

from . import regex
from .budget import Budget
from .builtins.loops import truth
from .errors import Fault
from .text import same_domain
from .values import Value, go_name, is_nil

__all__ = [
    "contains",
    "ends_with",
    "equal_ints",
    "equal_strings",
    "in_set",
    "inverted",
    "matches",
    "matches_pattern",
    "new_array",
    "new_map",
    "starts_with",
]

# What compiling a pattern costs in work, at least and per character: it is far more than a visit.
_PATTERN_COST = 500
_PATTERN_CHARACTER_COST = 20


def _mismatch(value: Value, wanted: str) -> Fault:
    found = "nil" if value is None else go_name(value)
    return Fault(f"interface conversion: interface {{}} is {found}, not {wanted}")


def inverted(budget: Budget, value: Value) -> bool:
    """not value"""
    return not truth(value)


def equal_strings(budget: Budget, a: Value, b: Value) -> bool:
    """a == b where both were known to be strings: anything else is an error."""
    if type(a) is not str or type(b) is not str:
        raise _mismatch(a if type(a) is not str else b, "string")
    if len(a) == len(b):
        budget.read(a)
    return a == b


def equal_ints(budget: Budget, a: Value, b: Value) -> bool:
    """a == b where both were known to be integers: anything else is an error."""
    if type(a) is not int or type(b) is not int:
        raise _mismatch(a if type(a) is not int else b, "int")
    return a == b


def in_set(items: Set[Value], budget: Budget, value: Value) -> bool:
    """value in items, a set of strings or one of integers; nil looks for the empty string, or 0."""
    wanted = type(next(iter(items)))
    if value is None:
        return wanted() in items
    if type(value) is not wanted:
        name = "string" if wanted is str else "int"
        raise Fault(
            f"reflect.Value.MapIndex: value of type {go_name(value)} "
            f"is not assignable to type {name}"
        )
    return value in items


def _two_strings(budget: Budget, a: Value, b: Value) -> bool:
    """Whether both are strings; false if one is nil, and anything else is an error."""
    if a is None or b is None:
        return False
    if type(a) is not str or type(b) is not str:
        raise _mismatch(a if type(a) is not str else b, "string")
    budget.read(a)
    return True


def contains(budget: Budget, a: Value, b: Value) -> bool:
    """a contains b"""
    if not _two_strings(budget, a, b):
        return False
    text, part = same_domain(a, b)
    return part in text


def starts_with(budget: Budget, a: Value, b: Value) -> bool:
    """a startsWith b"""
    if not _two_strings(budget, a, b):
        return False
    text, part = same_domain(a, b)
    return bool(text.startswith(part))


def ends_with(budget: Budget, a: Value, b: Value) -> bool:
    """a endsWith b"""
    if not _two_strings(budget, a, b):
        return False
    text, part = same_domain(a, b)
    return bool(text.endswith(part))


def matches_pattern(pattern: regex.Pattern, budget: Budget, text: Value) -> bool:
    """text matches a pattern that was compiled beforehand."""
    if is_nil(text):
        return False
    if type(text) is not str and type(text) is not bytes:
        raise _mismatch(text, "[]uint8")
    budget.read(text)
    return regex.search(pattern, text)


def matches(budget: Budget, text: Value, pattern: Value) -> bool:
    """text matches pattern"""
    if is_nil(text) or is_nil(pattern):
        return False
    if type(pattern) is not str:
        raise _mismatch(pattern, "string")
    if type(text) is not str and type(text) is not bytes:
        raise _mismatch(text, "[]uint8")
    budget.visit(_PATTERN_COST + _PATTERN_CHARACTER_COST * len(pattern))
    try:
        compiled = regex.compile(pattern)
    except regex.PatternError as problem:
        raise Fault(str(problem)) from None
    return matches_pattern(compiled, budget, text)


def new_array(budget: Budget, *items: Value) -> list[Value]:
    """An array literal."""
    budget.grow(len(items))
    return list(items)


def new_map(budget: Budget, *parts: Value) -> dict[str, Value]:
    """A map literal, from keys and values in turn; of equal keys the first wins."""
    budget.grow(len(parts) // 2)
    result: dict[str, Value] = {}
    for key, value in zip(parts[::2], parts[1::2], strict=True):
        if type(key) is not str:
            raise _mismatch(key, "string")
        result.setdefault(key, value)
    return result

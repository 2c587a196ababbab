"""Equality and order of values (spec 6.3 and 6.4)."""

from __future__ import annotations

from collections.abc import Callable
from operator import ge, gt, le, lt
from typing import Any

from .budget import Budget
from .errors import Fault
from .gotime import Duration, Time
from .text import is_broken, to_bytes
from .values import AnyMap, NilArray, Value, go_name, is_map, is_nil, is_number

__all__ = ["ORDERINGS", "deep_equal", "equal"]


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}

_SCALARS = frozenset([bool, str, Duration, Time])
# Arrays of these types are compared element by element whatever the elements are.
_PLAIN_ARRAYS = frozenset([list, tuple, range, bytes, NilArray])


def _ordering(op: str, compare: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    """a < b or its like, for numbers, strings, times and durations."""

    def ordered(budget: Budget, a: Value, b: Value) -> bool:
        kind = type(a)
        if kind is type(b):
            if kind is int or kind is float:
                return compare(a, b)
            if kind is Duration or kind is Time:
                return compare(a.ns, b.ns)
            if kind is str:
                budget.read(a)
                return compare(*_bytewise(a, b))
        if is_number(a) and is_number(b):
            if float in (kind, type(b)):
                return compare(float(a), float(b))
            return compare(a, b)
        raise Fault(f"invalid operation: {go_name(a)} {op} {go_name(b)}")

    return ordered


def _bytewise(a: str, b: str) -> tuple[str | bytes, str | bytes]:
    """Two strings in a form in which they compare as bytes do."""
    return (to_bytes(a), to_bytes(b)) if is_broken(a) or is_broken(b) else (a, b)


def equal(budget: Budget, a: Value, b: Value) -> bool:
    """a == b

    Numbers are equal by value, arrays element by element by this same rule, and everything else
    as `deep_equal` has it.
    """
    pairs = [(a, b)]
    while pairs:
        a, b = pairs.pop()
        kind, other = type(a), type(b)
        if kind is other and kind in _SCALARS:
            if kind is str and len(a) == len(b):
                budget.read(a)
            if a != b:
                return False
        elif is_number(a) and is_number(b):
            mixed = kind is not other and float in (kind, other)
            if float(a) != float(b) if mixed else a != b:
                return False
        elif _elementwise(a, b):
            if len(a) != len(b):
                return False
            budget.visit(len(a))
            pairs.extend(zip(reversed(a), reversed(b), strict=True))
        elif not (is_nil(a) and is_nil(b)) and not deep_equal(budget, a, b):
            return False
    return True


def _elementwise(a: Value, b: Value) -> bool:
    kind, other = type(a), type(b)
    if kind not in _PLAIN_ARRAYS or other not in _PLAIN_ARRAYS:
        return False
    return kind is other or "[]interface {}" in (go_name(a), go_name(b))


def deep_equal(budget: Budget, a: Value, b: Value) -> bool:
    """Whether two values are the same down to the Go types of their parts."""
    pairs = [(a, b)]
    while pairs:
        a, b = pairs.pop()
        if go_name(a) != go_name(b) or is_nil(a) != is_nil(b):
            return False
        if isinstance(a, (dict, AnyMap, list, tuple, range)):
            if a is b:
                continue
            if len(a) != len(b):
                return False
            budget.visit(len(a))
            parts = _parts(a, b)
            if parts is None:
                return False
            pairs.extend(reversed(parts))
        elif not _same(budget, a, b):
            return False
    return True


def _same(budget: Budget, a: Value, b: Value) -> bool:
    if isinstance(a, (str, bytes)):
        budget.read(a)
    if type(a) is Time:
        return bool(a.ns == b.ns and a.zone.name == b.zone.name)
    return bool(a == b)


def _parts(a: Value, b: Value) -> list[tuple[Value, Value]] | None:
    """What corresponds in two arrays or maps; None if one map has a key that the other has not."""
    if not is_map(a):
        return list(zip(a, b, strict=True))
    if isinstance(a, AnyMap):
        if a.entries.keys() != b.entries.keys():
            return None
        return [(value, b.entries[key][1]) for key, (_, value) in a.entries.items()]
    if a.keys() != b.keys():
        return None
    return [(value, b[key]) for key, value in a.items()]


ORDERINGS = {op: _ordering(op, compare) for op, compare in _COMPARE.items()}
"""The operators that ask for order, by their spelling; they raise Fault where there is none."""

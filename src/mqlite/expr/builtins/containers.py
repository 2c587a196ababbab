"""Builtins on arrays and maps."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from mqlite.expr.access import fetch, slice_of
from mqlite.expr.budget import Budget
from mqlite.expr.comparison import equal
from mqlite.expr.errors import Fault
from mqlite.expr.gotime import Duration, Month, Weekday
from mqlite.expr.operator_types import Refused
from mqlite.expr.ordering import descending, sort_values
from mqlite.expr.textform import text_of
from mqlite.expr.types import ANY, ARRAY, PAIRS_MAP, STRING, STRINGS, Type
from mqlite.expr.values import (
    NIL_ANYS,
    AnyMap,
    Pair,
    Pairs,
    Value,
    is_array,
    is_int,
    is_map,
    is_number,
    kind_name,
)

from .arguments import elements
from .registry import builtin, exactly, go_kind, judged, shown, signature

_MAX_DEPTH = 10_000
_INTS = Type("[]int", "array")
_FLOATS = Type("[]float64", "array")
# Beyond this, integers and floats no longer stand for each other one to one.
_EXACT = 2**53


def _judge(problem: str, kind: str, result: Type | None) -> Callable[[list[Type]], Type]:
    """One argument of a kind, or unknown; without a result the type of an element is given."""

    def judge(types: list[Type]) -> Type:
        exactly(1, types)
        if types[0].is_unknown:
            return result or ANY
        if go_kind(types[0]) != kind:
            raise Refused(problem.format(shown(types[0])))
        return result or types[0].go_item

    return judge


def _refuse(problem: str, value: Value) -> Fault:
    return Fault(problem.format(kind_name(value)))


# -- elements ------------------------------------------------------------------------------


@judged("first", _judge("cannot get first element from {}", "array", None))
def first(budget: Budget, value: Value) -> Value:
    """The first element, or nil."""
    return _element(budget, value, 0)


@judged("last", _judge("cannot get last element from {}", "array", None))
def last(budget: Budget, value: Value) -> Value:
    """The last element, or nil."""
    return _element(budget, value, -1)


def _element(budget: Budget, value: Value, index: int) -> Value:
    try:
        return fetch(budget, value, index)
    except Fault:
        return None


def _judge_take(types: list[Type]) -> Type:
    exactly(2, types)
    source, count = types
    if go_kind(source) not in ("array", "unknown"):
        raise Refused(f"cannot take from {shown(source)}")
    if go_kind(count) not in ("integer", "unknown"):
        raise Refused(f"cannot take {shown(count)} elements")
    return ARRAY if source.name == ARRAY.name else source


@judged("take", _judge_take)
def take(budget: Budget, value: Value, count: Value) -> Value:
    """The first few elements."""
    if not is_array(value):
        raise _refuse("cannot take from {}", value)
    if isinstance(count, (Duration, Month, Weekday)):
        count = count.ns if isinstance(count, Duration) else count.value
    if not is_int(count):
        raise _refuse("cannot take {} elements", count)
    if count < 0:
        raise Fault("reflect.Value.Slice: slice index out of bounds")
    return slice_of(budget, value, count, 0)


@judged("reverse", _judge("cannot reverse {}", "array", ARRAY))
def reverse(budget: Budget, value: Value) -> list[Value]:
    """The elements in opposite order."""
    if not is_array(value):
        raise _refuse("cannot reverse {}", value)
    budget.grow(len(value))
    return elements(value)[::-1]


@judged("uniq", _judge("cannot uniq {}", "array", ARRAY))
def uniq(budget: Budget, value: Value) -> list[Value]:
    """The elements without those that equal an earlier one."""
    if not is_array(value):
        raise _refuse("cannot uniq {}", value)
    kept: list[Value] = []
    seen: set[Hashable] = set()
    others: list[Value] = []
    for item in elements(value):
        budget.visit()
        key = _identity(item)
        if key is None:
            budget.visit(len(others))
            if any(equal(budget, other, item) for other in others):
                continue
            others.append(item)
        elif key in seen:
            continue
        seen.add(key)
        kept.append(item)
    return kept


def _identity(item: Value) -> Hashable:
    """Something that is equal for equal values, or None if only comparing can tell."""
    if isinstance(item, bool):
        return (bool, item)
    if isinstance(item, str):
        return item
    if is_number(item) and abs(item) < _EXACT:
        return float(item)
    return None


def _judge_concat(types: list[Type]) -> Type:
    if not types:
        raise Refused("invalid number of arguments (expected at least 1, got 0)")
    for given in types:
        if go_kind(given) not in ("array", "unknown"):
            raise Refused(f"cannot concat {shown(given)}")
    return ARRAY


@judged("concat", _judge_concat)
def concat(budget: Budget, *arrays: Value) -> list[Value]:
    """The elements of all arrays, in order."""
    joined: list[Value] = []
    for array in arrays:
        if not is_array(array):
            raise _refuse("cannot concat {}", array)
        budget.grow(len(array))
        joined += elements(array)
    return joined or NIL_ANYS


@judged("flatten", _judge("cannot flatten {}", "array", ARRAY))
def flatten(budget: Budget, value: Value) -> list[Value]:
    """The elements of an array and of all arrays in it."""
    if not is_array(value):
        raise _refuse("cannot flatten {}", value)
    flat: list[Value] = []
    pending: list[tuple[Value, int]] = [(value, 0)]
    while pending:
        item, depth = pending.pop()
        budget.visit()
        if not is_array(item):
            flat.append(item)
            continue
        if depth > _MAX_DEPTH:
            raise Fault("recursion depth exceeded")
        pending.extend((inner, depth + 1) for inner in reversed(elements(item)))
    budget.grow(len(flat))
    return flat


@builtin(
    "sort",
    *(signature(kind, STRING, gives=ARRAY) for kind in (ARRAY, STRINGS, _FLOATS, _INTS)),
    *(signature(kind, gives=ARRAY) for kind in (ARRAY, STRINGS, _FLOATS, _INTS)),
)
def sort(budget: Budget, value: Value, order: Value = "asc") -> list[Value]:
    """The elements in order; an array of another type, or no array at all, gives nil."""
    downwards = descending(order, "invalid order {}, expected asc or desc")
    if type(value) not in (list, tuple, range):
        return NIL_ANYS
    budget.grow(len(value))
    return sort_values(budget, list(value), downwards)


# -- maps ----------------------------------------------------------------------------------


def _entries(value: Value) -> list[tuple[Value, Value]]:
    return list(value.entries.values() if isinstance(value, AnyMap) else value.items())


@judged("keys", _judge("cannot get keys from {}", "map", ARRAY))
def keys(budget: Budget, value: Value) -> list[Value]:
    """The keys of a map."""
    if not is_map(value):
        raise _refuse("cannot get keys from {}", value)
    budget.visit(len(value))
    return [key for key, _ in _entries(value)]


@judged("values", _judge("cannot get values from {}", "map", ARRAY))
def values(budget: Budget, value: Value) -> list[Value]:
    """The values of a map."""
    if not is_map(value):
        raise _refuse("cannot get values from {}", value)
    budget.visit(len(value))
    return [held for _, held in _entries(value)]


@judged("toPairs", _judge("cannot transform {} to pairs", "map", ARRAY))
def to_pairs(budget: Budget, value: Value) -> Pairs:
    """A map's entries, each as an array of key and value."""
    if not is_map(value):
        raise _refuse("cannot transform {} to pairs", value)
    budget.visit(len(value))
    return Pairs(Pair(entry) for entry in _entries(value))


@judged("fromPairs", _judge("cannot transform {} from pairs", "array", PAIRS_MAP))
def from_pairs(budget: Budget, value: Value) -> AnyMap:
    """A map from arrays of key and value; of equal keys the later wins."""
    if not is_array(value):
        raise Fault(f"cannot transform {text_of(budget, value)} from pairs")
    result = AnyMap(PAIRS_MAP.name, None)
    for pair in elements(value):
        budget.visit()
        if not is_array(pair):
            raise Fault(f"invalid pair {text_of(budget, pair)}")
        if len(pair) != 2:
            raise Fault(f"invalid pair length {text_of(budget, pair)}")
        key, held = elements(pair)
        result.put(key, held)
    return result

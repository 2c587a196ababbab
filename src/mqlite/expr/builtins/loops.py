"""The builtins that evaluate a body per element (spec section 8).

A loop is a generator that yields each element and is sent what the body makes of it; so one
definition serves whoever drives it, however the body is evaluated. `slot` is where `#` lives among
the evaluation's local values; `#index` and `#acc` follow it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from mqlite.expr.arithmetic import add
from mqlite.expr.budget import Budget
from mqlite.expr.errors import Fault
from mqlite.expr.ordering import descending, sort_by_keys
from mqlite.expr.text import to_bytes
from mqlite.expr.types import GROUPS, Type
from mqlite.expr.values import NIL_ANYS, AnyMap, Value, go_name, is_array, is_map, kind_name

from .arguments import elements
from .registry import BUILTINS, Builtin

__all__ = [
    "ACCUMULATOR",
    "INDEX",
    "LOOPS",
    "SKIP",
    "Loop",
    "Run",
    "begin",
    "opened",
    "readable",
    "truth",
]

INDEX, ACCUMULATOR = 1, 2
"""Where `#index` and `#acc` are, from the slot of `#` on."""

UNREADABLE = object()
"""The element of a map: a loop may go over it, but not look at it."""

SKIP = object()
"""What a body makes of an element that a filter in front of it does not let through."""

Loop: TypeAlias = Generator[Value, Value, Value]


@dataclass(slots=True)
class Run:
    """One run of a loop: its elements, and what the call says beyond them."""

    budget: Budget
    items: Sequence[Value]
    slot: int
    extra: Sequence[Value] = ()
    threshold: int | None = None
    required: bool = False


LOOPS: dict[str, Callable[[Run], Loop]] = {}


def _loop(name: str, shown: str) -> Callable[[Callable[[Run], Loop]], Callable[[Run], Loop]]:
    def declare(loop: Callable[[Run], Loop]) -> Callable[[Run], Loop]:
        LOOPS[name] = loop
        BUILTINS[name] = Builtin(name, loop, shown=Type(shown, "function"))
        return loop

    return declare


def opened(budget: Budget, value: Value) -> Sequence[Value]:
    """The elements of what a loop goes over; raises Fault if it cannot be gone over."""
    if isinstance(value, bytes):
        budget.visit(len(value))
        return elements(value)
    if is_array(value):
        sequence: Sequence[Value] = value
        return sequence
    if isinstance(value, str):
        budget.visit(len(value))
        return elements(to_bytes(value))
    if is_map(value):
        budget.visit(len(value))
        return [UNREADABLE] * len(value)
    kind = "zero" if value is None else kind_name(value)
    raise Fault(f"reflect: call of reflect.Value.Len on {kind} Value")


def begin(items: Sequence[Value]) -> tuple[Value, int, None]:
    """What `#`, `#index` and `#acc` are before a loop's first turn."""
    return (items[0] if len(items) else UNREADABLE), 0, None


def readable(value: Value) -> Value:
    """An element that is looked at; raises Fault if it is a map's."""
    if value is UNREADABLE:
        raise Fault("reflect: call of reflect.Value.Index on map Value")
    return value


def truth(value: Value) -> bool:
    """A value that must be a boolean; raises Fault if it is not."""
    if value is True or value is False:
        return bool(value)
    found = "nil" if value is None else go_name(value)
    raise Fault(f"interface conversion: interface {{}} is {found}, not bool")


_TEST = "func([]interface {}, func(interface {}) bool) "
_MAPPING = "func([]interface {}, func(interface {}) interface {}) "


@_loop("all", _TEST + "bool")
def _all(run: Run) -> Loop:
    for item in run.items:
        if not truth((yield item)):
            return False
    return True


@_loop("none", _TEST + "bool")
def _none(run: Run) -> Loop:
    for item in run.items:
        if truth((yield item)):
            return False
    return True


@_loop("any", _TEST + "bool")
def _any(run: Run) -> Loop:
    for item in run.items:
        if truth((yield item)):
            return True
    return False


@_loop("one", _TEST + "bool")
def _one(run: Run) -> Loop:
    found = 0
    for item in run.items:
        found += truth((yield item))
    return found == 1


@_loop("count", _TEST + "int")
def _count(run: Run) -> Loop:
    found = 0
    for item in run.items:
        found += truth((yield item))
        if found == run.threshold:
            break
    return found


@_loop("filter", _TEST + "[]interface {}")
def _filter(run: Run) -> Loop:
    kept: list[Value] = []
    for item in run.items:
        if truth((yield item)):
            kept.append(readable(item))
    run.budget.grow(len(kept))
    return kept


def filter_map(run: Run) -> Loop:
    """A filter and the map behind it in one: the body gives SKIP for what is left out."""
    kept: list[Value] = []
    for item in run.items:
        made = yield item
        if made is not SKIP:
            kept.append(made)
    run.budget.grow(len(kept))
    return kept


@_loop("map", _MAPPING + "[]interface {}")
def _map(run: Run) -> Loop:
    made: list[Value] = []
    local = run.budget.locals
    for index, item in enumerate(run.items):
        local[run.slot + INDEX] = index
        made.append((yield item))
    run.budget.grow(len(made))
    return made


def _found(run: Run, items: Iterable[Value]) -> Loop:
    for item in items:
        if truth((yield item)):
            return readable(item)
    return _missed(run)


def _missed(run: Run) -> None:
    if run.required:
        raise Fault("reflect: slice index out of range")


@_loop("find", _TEST + "interface {}")
def _find(run: Run) -> Loop:
    found = yield from _found(run, run.items)
    return found


@_loop("findLast", _TEST + "interface {}")
def _find_last(run: Run) -> Loop:
    found = yield from _found(run, reversed(run.items))
    return found


def find_map(run: Run) -> Loop:
    """A find and the map behind it in one: the body gives SKIP for what is passed over."""
    for item in run.items:
        made = yield item
        if made is not SKIP:
            return made
    return _missed(run)


def find_last_map(run: Run) -> Loop:
    """As `find_map`, from the end."""
    for item in reversed(run.items):
        made = yield item
        if made is not SKIP:
            return made
    return _missed(run)


@_loop("findIndex", _TEST + "int")
def _find_index(run: Run) -> Loop:
    for index, item in enumerate(run.items):
        if truth((yield item)):
            return index
    return None


@_loop("findLastIndex", _TEST + "int")
def _find_last_index(run: Run) -> Loop:
    for index in range(len(run.items) - 1, -1, -1):
        if truth((yield run.items[index])):
            return index
    return None


@_loop("sum", _MAPPING + "int")
def _sum(run: Run) -> Loop:
    total: Value = 0
    for item in run.items:
        total = add(run.budget, (yield item), total)
    return total


@_loop("groupBy", _MAPPING + "map[interface {}][]interface {}")
def _group_by(run: Run) -> Loop:
    groups = AnyMap(GROUPS.name, NIL_ANYS)
    for item in run.items:
        key = yield item
        group = groups.get(key)
        if group is NIL_ANYS:
            group = []
            groups.put(key, group)
        group.append(readable(item))
    return groups


@_loop("sortBy", _MAPPING + "[]interface {}")
def _sort_by(run: Run) -> Loop:
    downwards = descending(run.extra[0] if run.extra else "asc", "unknown order, use asc or desc")
    keys: list[Value] = []
    for item in run.items:
        keys.append((yield item))
    run.budget.grow(len(keys))
    return sort_by_keys(run.budget, list(map(readable, run.items)), keys, downwards)


@_loop("reduce", "func([]interface {}, func(interface {}) interface {}, interface {}) interface {}")
def _reduce(run: Run) -> Loop:
    local: list[Any] = run.budget.locals
    accumulator = run.slot + ACCUMULATOR
    start = 0
    if run.extra:
        result = run.extra[0]
    elif len(run.items):
        result, start = readable(run.items[0]), 1
    else:
        raise Fault("reduce of empty array with no initial value")
    for index in range(start, len(run.items)):
        local[run.slot + INDEX] = index
        local[accumulator] = result
        result = yield run.items[index]
    return result

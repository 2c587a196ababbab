"""Builtins on numbers and bits."""

from __future__ import annotations

import math
from collections.abc import Callable

from mqlite.expr import trampoline
from mqlite.expr.budget import Budget
from mqlite.expr.comparison import ORDERINGS
from mqlite.expr.errors import Fault
from mqlite.expr.gotime import Duration, Month, Weekday
from mqlite.expr.integers import wrap
from mqlite.expr.operator_types import Refused
from mqlite.expr.trampoline import Steps
from mqlite.expr.types import ANY, FLOAT, INT, Type
from mqlite.expr.values import Value, go_name, is_array, is_int, is_number

from .arguments import elements
from .registry import builtin, exactly, go_kind, judged, shown, signature

_MAX_DEPTH = 10_000


def _judge_number(name: str, result: Type | None, types: list[Type]) -> Type:
    exactly(1, types)
    if go_kind(types[0]) not in ("integer", "float", "unknown"):
        raise Refused(f"invalid argument for {name} (type {shown(types[0])})")
    return result or types[0]


def _need_number(name: str, value: Value) -> Value:
    if is_number(value):
        return value
    raise Fault(f"invalid argument for {name} (type {go_name(value)})")


@judged("abs", lambda types: _judge_number("abs", None, types))
def absolute(budget: Budget, value: Value) -> Value:
    """The size of a number; the least integer has none and stays itself."""
    number = _need_number("abs", value)
    if isinstance(number, float):
        return -number if number < 0 else number
    return type(number)(wrap(abs(number)))


@judged("ceil", lambda types: _judge_number("ceil", FLOAT, types))
def ceiling(budget: Budget, value: Value) -> float:
    """The least whole number that is not less."""
    return _whole(math.ceil, float(_need_number("ceil", value)))


@judged("floor", lambda types: _judge_number("floor", FLOAT, types))
def floor(budget: Budget, value: Value) -> float:
    """The greatest whole number that is not greater."""
    return _whole(math.floor, float(_need_number("floor", value)))


@judged("round", lambda types: _judge_number("round", FLOAT, types))
def rounded(budget: Budget, value: Value) -> float:
    """The nearest whole number; halves go away from zero."""
    return _whole(_half_away, float(_need_number("round", value)))


def _half_away(number: float) -> int:
    whole = math.trunc(number)
    return whole + int(math.copysign(1, number)) * (abs(number - whole) >= 0.5)


def _whole(function: Callable[[float], int], number: float) -> float:
    if not math.isfinite(number):
        return number
    return math.copysign(float(abs(function(number))), number)


# -- aggregates ----------------------------------------------------------------------------


def _judge_aggregate(name: str, types: list[Type]) -> Type:
    if not types:
        raise Refused(f"not enough arguments to call {name}")
    for given in types:
        if go_kind(given) in ("array", "unknown"):
            return ANY
        if go_kind(given) not in ("integer", "float"):
            raise Refused(f"invalid argument for {name} (type {shown(given)})")
    return types[0]


@judged("max", lambda types: _judge_aggregate("max", types))
def maximum(budget: Budget, *values: Value) -> Value:
    """The greatest of some numbers, nested arrays and all; nil if there are none."""
    return trampoline.run(_extreme(budget, "max", "<", values, 0))


@judged("min", lambda types: _judge_aggregate("min", types))
def minimum(budget: Budget, *values: Value) -> Value:
    """The least of some numbers, nested arrays and all; nil if there are none."""
    return trampoline.run(_extreme(budget, "min", ">", values, 0))


def _too_deep(depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise Fault("recursion depth exceeded")


def _extreme(
    budget: Budget, name: str, beaten: str, values: tuple[Value, ...], depth: int
) -> Steps[Value]:
    _too_deep(depth)
    beats = ORDERINGS[beaten]
    best: Value = None
    for value in values:
        budget.visit()
        if not is_array(value):
            if not is_number(value) and not isinstance(value, (Duration, Month, Weekday)):
                if len(values) == 1:
                    return value
                raise Fault(f"invalid argument for {name} (type {go_name(value)})")
            if best is None or beats(budget, best, value):
                best = value
            continue
        for item in elements(value):
            budget.visit()
            inner = item
            if not is_number(item):
                inner = yield _extreme(budget, name, beaten, (item,), depth + 1)
            if not is_number(inner):
                raise Fault(f"invalid argument for {name} (type {go_name(inner)})")
            if best is None or beats(budget, best, inner):
                best = inner
    return best


@judged("mean", lambda types: _judge_aggregate("mean", types))
def mean(budget: Budget, *values: Value) -> float:
    """The mean of some numbers, nested arrays and all; 0 if there are none."""
    count, total = trampoline.run(_total(budget, values, 0))
    return total / count if count else 0.0


def _total(budget: Budget, values: tuple[Value, ...], depth: int) -> Steps[tuple[int, float]]:
    _too_deep(depth)
    count, total = 0, 0.0
    for value in values:
        budget.visit()
        if is_array(value):
            inner: tuple[int, float] = yield _total(budget, tuple(elements(value)), depth + 1)
            count, total = count + inner[0], total + inner[1]
        else:
            count, total = count + 1, total + _as_float("mean", value)
    return count, total


@judged("median", lambda types: _judge_aggregate("median", types))
def median(budget: Budget, *values: Value) -> float:
    """The middle one of some numbers, or the mean of the two middle ones; 0 if none."""
    numbers = sorted(_numbers(budget, values))
    if not numbers:
        return 0.0
    middle = len(numbers) // 2
    if len(numbers) % 2:
        return numbers[middle]
    return (numbers[middle - 1] + numbers[middle]) / 2


def _numbers(budget: Budget, values: tuple[Value, ...]) -> list[float]:
    numbers: list[float] = []
    pending: list[tuple[Value, int]] = [(value, 0) for value in reversed(values)]
    while pending:
        value, depth = pending.pop()
        budget.visit()
        if is_array(value):
            _too_deep(depth + 1)
            pending.extend((item, depth + 1) for item in reversed(elements(value)))
        else:
            numbers.append(_as_float("median", value))
    return numbers


def _as_float(name: str, value: Value) -> float:
    if is_number(value):
        return float(value)
    match value:
        case Duration():
            return float(value.ns)
        case Month() | Weekday():
            return float(value.value)
    raise Fault(f"invalid argument for {name} (type {go_name(value)})")


# -- bits ----------------------------------------------------------------------------------


def _bits(name: str, operation: Callable[[int, int], int]) -> None:
    @builtin(name, signature(INT, INT, gives=INT))
    def apply(budget: Budget, a: Value, b: Value) -> int:
        return wrap(operation(_need_int(name, a), _need_int(name, b)))


def _need_int(name: str, value: Value) -> int:
    if is_int(value):
        return int(value)
    raise Fault(f"cannot use {go_name(value)} as argument (type int) to call {name}")


def _shift(operation: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def shift(number: int, count: int) -> int:
        if count < 0:
            raise Fault(f"invalid operation: negative shift count {count} (type int)")
        return operation(number, min(count, 64))

    return shift


_bits("bitand", lambda a, b: a & b)
_bits("bitor", lambda a, b: a | b)
_bits("bitxor", lambda a, b: a ^ b)
_bits("bitnand", lambda a, b: a & ~b)
_bits("bitshl", _shift(lambda number, count: number << count))
_bits("bitshr", _shift(lambda number, count: number >> count))
_bits("bitushr", _shift(lambda number, count: (number & 0xFFFF_FFFF_FFFF_FFFF) >> count))


@builtin("bitnot", signature(INT, gives=INT))
def bit_not(budget: Budget, value: Value) -> int:
    """Every bit turned over."""
    return ~_need_int("bitnot", value)

"""Calling methods and function values (spec 7.7)."""

from __future__ import annotations

from collections.abc import Callable

from .access import fetch
from .budget import Budget
from .errors import Fault
from .gotime import Duration, Location, Time, find_method
from .types import Signature, Type
from .values import FunctionValue, Value, go_name, is_int

__all__ = ["call_method", "call_value"]

# Methods work with calendars and layouts, which costs more than a visit.
_CALL_COST = 5

_PARAMETER_CLASSES: dict[str, type] = {
    "string": str,
    "time": Time,
    "duration": Duration,
    "location": Location,
    "array": bytes,
}


def call_method(name: str, budget: Budget, base: Value, *arguments: Value) -> Value:
    """base.name(arguments)"""
    method = find_method(base, name)
    if method is None:
        return call_value(budget, fetch(budget, base, name), *arguments)
    _check(budget, method.signature, arguments)
    return method.call(base, *arguments)


def call_value(budget: Budget, function: Value, *arguments: Value) -> Value:
    """function(arguments); raises Fault if it is no function."""
    if function is None:
        raise Fault("invalid operation: cannot call nil")
    if not isinstance(function, FunctionValue):
        raise Fault(f"invalid operation: cannot call non-function of type {go_name(function)}")
    _check(budget, function.signature, arguments)
    call: Callable[..., Value] = function.call
    return call(*arguments)


def _check(budget: Budget, signature: Signature, arguments: tuple[Value, ...]) -> None:
    budget.visit(_CALL_COST)
    if len(arguments) != len(signature.parameters):
        raise Fault("reflect: Call with wrong number of input arguments")
    for wanted, value in zip(signature.parameters, arguments, strict=True):
        if not _fits(wanted, value):
            raise Fault(f"reflect: Call using {go_name(value)} as type {wanted}")
        if isinstance(value, str):
            budget.visit(len(value))


def _fits(wanted: Type, value: Value) -> bool:
    if wanted.is_integer:
        return is_int(value)
    return isinstance(value, _PARAMETER_CLASSES[wanted.kind])

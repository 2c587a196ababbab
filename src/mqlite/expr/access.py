"""Members, indexes and slices of values, and `in` (spec section 7, 6.5)."""

from __future__ import annotations

from functools import partial

from .arithmetic import to_int
from .budget import Budget
from .comparison import equal
from .errors import Fault
from .gotime import Time, find_method
from .integers import MAX_INT
from .text import from_bytes, to_bytes
from .textform import text_of
from .values import (
    AnyMap,
    Environment,
    FunctionValue,
    NilArray,
    Pairs,
    StringMap,
    Uint8,
    Value,
    go_name,
    is_array,
    is_map,
    key_of,
)

__all__ = ["contains_value", "fetch", "slice_of"]


def fetch(budget: Budget, base: Value, key: Value) -> Value:
    """base.key or base[key]; raises Fault where there is no such thing."""
    kind = type(base)
    if kind is dict:
        if type(key) is str:
            return base.get(key)
        return base.get(_string_key(key))
    if kind is StringMap:
        return base.get(_string_key(key), "")
    if is_array(base):
        return _item(base, key)
    if kind is AnyMap:
        return base.get(key)
    if kind is str:
        return _byte(budget, base, key)
    if type(key) is str:
        if kind is Environment and base.has(key):
            return base.read(key)
        method = find_method(base, key)
        if method is not None:
            call = partial(method.call, base)
            return FunctionValue(f"func() {method.signature.result}", call, method.signature)
    raise Fault(f"cannot fetch {text_of(budget, key)} from {go_name(base)}")


def _string_key(key: Value) -> str:
    if key is None:
        return ""
    if type(key) is str:
        return key
    raise Fault(
        f"reflect.Value.MapIndex: value of type {go_name(key)} is not assignable to type string"
    )


def _position(key: Value, length: int) -> int:
    index = to_int(key)
    position = index + length if index < 0 else index
    if not 0 <= position < length:
        raise Fault(f"index out of range: {position} (array length is {length})")
    return position


def _item(base: Value, key: Value) -> Value:
    item = base[_position(key, len(base))]
    return Uint8(item) if type(base) is bytes else item


def _byte(budget: Budget, base: str, key: Value) -> Uint8:
    if base.isascii():
        return Uint8(ord(base[_position(key, len(base))]))
    budget.read(base)
    data = to_bytes(base)
    return Uint8(data[_position(key, len(data))])


def slice_of(budget: Budget, base: Value, stop: Value, start: Value) -> Value:
    """base[start:stop], where a stop that was not written is `MAX_INT`.

    Bounds beyond the ends are moved to them, so this fails for wrong kinds only.
    """
    if type(base) is str:
        budget.read(base)
        if base.isascii():
            return base[_bounds(start, stop, len(base))]
        data = to_bytes(base)
        return from_bytes(data[_bounds(start, stop, len(data))])
    if not is_array(base):
        if stop == MAX_INT and not is_map(base):
            raise Fault(f"invalid argument for len (type {go_name(base)})")
        raise Fault(f"cannot slice {text_of(budget, start)}")
    if type(base) is NilArray:
        return base
    part = base[_bounds(start, stop, len(base))]
    budget.visit(len(part))
    return Pairs(part) if type(base) is Pairs else part


def _bounds(start: Value, stop: Value, length: int) -> slice:
    first, last = _bound_at(start, length), _bound_at(stop, length)
    return slice(min(first, last), last)


def _bound_at(bound: Value, length: int) -> int:
    index = to_int(bound)
    if index < 0:
        index += length
    return max(0, min(index, length))


def contains_value(budget: Budget, needle: Value, haystack: Value) -> bool:
    """needle in haystack"""
    if haystack is None:
        return False
    if is_array(haystack):
        budget.visit(len(haystack))
        if type(needle) is str and type(haystack) in (list, tuple):
            return needle in haystack
        return any(equal(budget, item, needle) for item in haystack)
    if isinstance(haystack, dict):
        return _string_key(needle) in haystack
    if type(haystack) is AnyMap:
        return key_of(needle) in haystack.entries
    if type(haystack) in (Time, Environment):
        if type(needle) is str:
            # Structs are asked for their Go fields, of which a time shows none.
            return type(haystack) is Environment and needle in haystack.fields
        raise Fault(f"cannot use {go_name(needle)} as field name of {go_name(haystack)}")
    raise Fault(f'operator "in" not defined on {go_name(haystack)}')

"""Values at run time (spec section 4).

nil, bool, int, float, str, bytes, list and dict stand for themselves; `tuple` is a `[]string`,
`range` a `[]int`. The classes here are the kinds that Python has no type for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias

from .errors import Fault
from .integers import wrap
from .types import Signature

__all__ = [
    "NIL_ANYS",
    "NIL_STRINGS",
    "AnyMap",
    "Environment",
    "FunctionValue",
    "Int64",
    "NilArray",
    "Pair",
    "Pairs",
    "StringMap",
    "Uint8",
    "Value",
    "go_name",
    "is_array",
    "is_int",
    "is_map",
    "is_nil",
    "is_number",
    "key_of",
    "kind_name",
    "register_names",
]

Value: TypeAlias = Any


class Int64(int):
    """An integer that Go calls int64; a plain int calls itself int."""

    __slots__ = ()

    @classmethod
    def wrapped(cls, number: int) -> Int64:
        return cls(wrap(number))


class Uint8(int):
    """A byte, from indexing bytes or a dynamic string."""

    __slots__ = ()


class NilArray(list[Any]):
    """An array that is nil: empty, yet equal to nil. Never changed, never built but here."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


NIL_ANYS = NilArray("[]interface {}")
NIL_STRINGS = NilArray("[]string")


class Pair(tuple[Any, Any]):
    """A key and a value, as `toPairs` makes them: an array of its own type."""

    __slots__ = ()


class Pairs(list[Pair]):
    """What `toPairs` returns: an array of its own type."""

    __slots__ = ()


class StringMap(dict[str, str]):
    """A map of strings, where an absent key reads as the empty string."""

    __slots__ = ()


class AnyMap:
    """A map with keys of any kind, from `groupBy` or `fromPairs`; absent keys read as `missing`."""

    __slots__ = ("entries", "missing", "name")

    def __init__(self, name: str, missing: Value) -> None:
        self.name = name
        self.missing = missing
        self.entries: dict[Hashable, tuple[Value, Value]] = {}

    def __len__(self) -> int:
        return len(self.entries)

    def get(self, key: Value) -> Value:
        found = self.entries.get(key_of(key))
        return self.missing if found is None else found[1]

    def put(self, key: Value, value: Value) -> None:
        self.entries[key_of(key)] = (key, value)


class FunctionValue:
    """A method that was named without being called, or is about to be."""

    __slots__ = ("call", "name", "signature")

    def __init__(self, name: str, call: Callable[..., Value], signature: Signature) -> None:
        self.name = name
        self.call = call
        self.signature = signature


class Environment:
    """`$env` as a value: a struct, of which an expression can read the variables by name."""

    __slots__ = ("fields", "name", "values")

    def __init__(self, name: str, fields: Mapping[str, str], values: Mapping[str, Value]) -> None:
        self.name = name
        self.fields = fields
        self.values = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Environment) and self.values is other.values

    def __hash__(self) -> int:
        return id(self.values)

    def has(self, name: Value) -> bool:
        return isinstance(name, str) and (name in self.values or name in self.fields)

    def read(self, name: str) -> Value:
        return self.values[self.fields.get(name, name)]


_NAMES: dict[type, str] = {
    type(None): "<nil>",
    bool: "bool",
    int: "int",
    Int64: "int64",
    Uint8: "uint8",
    float: "float64",
    str: "string",
    bytes: "[]uint8",
    list: "[]interface {}",
    tuple: "[]string",
    range: "[]int",
    Pair: "[2]interface {}",
    Pairs: "[][2]interface {}",
    dict: "map[string]interface {}",
    StringMap: "map[string]string",
}

_KINDS: dict[type, str] = {
    type(None): "invalid",
    list: "slice",
    NilArray: "slice",
    tuple: "slice",
    range: "slice",
    bytes: "slice",
    Pairs: "slice",
    Pair: "array",
    dict: "map",
    StringMap: "map",
    AnyMap: "map",
    Environment: "struct",
}


def register_names(names: Mapping[type, str]) -> None:
    """Let `go_name` know more types."""
    _NAMES.update(names)


def go_name(value: Value) -> str:
    """The Go type of a value, as messages show it."""
    name = _NAMES.get(type(value))
    return str(value.name) if name is None else name


def kind_name(value: Value) -> str:
    """The Go kind of a value: what is left of its type without the details."""
    return _KINDS.get(type(value)) or go_name(value)


def is_int(value: Value) -> bool:
    """Whether a value is an integer of any width."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Value) -> bool:
    """Whether a value is an integer or a float."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_array(value: Value) -> bool:
    """Whether a value is an array of any type, bytes among them."""
    return isinstance(value, (list, tuple, range, bytes))


def is_map(value: Value) -> bool:
    """Whether a value is a map of any type."""
    return isinstance(value, (dict, AnyMap))


def is_nil(value: Value) -> bool:
    """Whether a value counts as nil."""
    return value is None or type(value) is NilArray


_UNHASHABLE: Sequence[type] = (list, tuple, range, bytes, dict, NilArray, Pairs, StringMap, AnyMap)


# Python hashes nested tuples by recursion that nothing bounds.
_MAX_KEY_DEPTH = 100


def key_of(value: Value, depth: int = 0) -> Hashable:
    """What stands for a value among the keys of a map: its Go type and itself.

    Raises Fault for values that cannot be keys.
    """
    if type(value) is Pair and depth < _MAX_KEY_DEPTH:
        return ("pair", key_of(value[0], depth + 1), key_of(value[1], depth + 1))
    if type(value) in _UNHASHABLE or type(value) is Pair:
        raise Fault(f"runtime error: hash of unhashable type {go_name(value)}")
    return (type(value), value)

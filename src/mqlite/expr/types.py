"""Static types: what the checker knows about a node (spec section 5).

A type is known by its name, which is the Go spelling that error messages show. Arrays and maps
also carry what their elements are known to be, which says nothing about identity: an array
literal of integers is a `[]interface {}` whose elements are known to be integers.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "ANY",
    "ARRAY",
    "BOOL",
    "BYTES",
    "DURATION",
    "FLOAT",
    "GROUPS",
    "INT",
    "INT64",
    "LOCATION",
    "MAP",
    "MONTH",
    "NIL",
    "PAIRS_MAP",
    "STRING",
    "STRINGS",
    "STRING_MAP",
    "TIME",
    "UINT8",
    "UNKNOWN",
    "WEEKDAY",
    "Signature",
    "Type",
    "array_of",
    "assignable",
    "function_type",
    "struct_type",
]


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes and gives; `results` counts the values a Go method returns."""

    parameters: tuple[Type, ...]
    result: Type
    results: int = 1


@dataclass(frozen=True, slots=True)
class Type:
    """A static type."""

    name: str
    kind: str
    element: Type | None = None
    """Elements of an array, values of a map."""
    key: Type | None = None
    """Keys of a map."""
    signature: Signature | None = None
    """Of a function; None if the function judges its arguments itself."""

    def __str__(self) -> str:
        return self.name

    @property
    def is_unknown(self) -> bool:
        """Whether the checker knows nothing: any value may turn up."""
        return self.kind == "unknown"

    @property
    def is_nil(self) -> bool:
        return self.kind == "nil"

    @property
    def is_bool(self) -> bool:
        return self.kind == "bool"

    @property
    def is_integer(self) -> bool:
        """A plain Go integer type; months, weekdays and durations are none."""
        return self.kind == "integer"

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_number(self) -> bool:
        return self.kind in ("integer", "float")

    @property
    def is_string(self) -> bool:
        return self.kind == "string"

    @property
    def is_array(self) -> bool:
        return self.kind == "array"

    @property
    def is_map(self) -> bool:
        return self.kind == "map"

    @property
    def is_struct(self) -> bool:
        return self.kind in ("struct", "time")

    @property
    def item(self) -> Type:
        """What an element is known to be; unknown if this has none."""
        return self.element or UNKNOWN

    @property
    def go_item(self) -> Type:
        """What an element is by the Go type alone, without what a literal adds."""
        return ANY if self.name == "[]interface {}" else self.item


UNKNOWN = Type("unknown", "unknown")
"""Nothing is known, not even that Go would call it an interface."""
ANY = Type("interface {}", "unknown")
NIL = Type("unknown", "nil")
BOOL = Type("bool", "bool")
INT = Type("int", "integer")
INT64 = Type("int64", "integer")
UINT8 = Type("uint8", "integer")
FLOAT = Type("float64", "float")
STRING = Type("string", "string")
TIME = Type("time.Time", "time")
DURATION = Type("time.Duration", "duration")
MONTH = Type("time.Month", "month")
WEEKDAY = Type("time.Weekday", "weekday")
LOCATION = Type("*time.Location", "location")

ARRAY = Type("[]interface {}", "array", element=ANY)
STRINGS = Type("[]string", "array", element=STRING)
BYTES = Type("[]uint8", "array", element=UINT8)
MAP = Type("map[string]interface {}", "map", element=ANY, key=STRING)
STRING_MAP = Type("map[string]string", "map", element=STRING, key=STRING)
GROUPS = Type("map[interface {}][]interface {}", "map", element=ARRAY, key=ANY)
PAIRS_MAP = Type("map[interface {}]interface {}", "map", element=ANY, key=ANY)


def array_of(element: Type) -> Type:
    """An array whose elements are known, as from a literal or `map`."""
    return Type(ARRAY.name, "array", element=element)


def struct_type(name: str) -> Type:
    """The type of a whole environment."""
    return Type(name, "struct")


def function_type(signature: Signature, receiver: Type | None = None) -> Type:
    """The type of a function, or of a method named without a call."""
    taken = (() if receiver is None else (receiver,)) + signature.parameters
    shown = ", ".join(str(parameter) for parameter in taken)
    return Type(f"func({shown}) {signature.result}", "function", signature=signature)


def assignable(value: Type, target: Type) -> bool:
    """Go's assignability, as far as these types go."""
    if value.is_nil:
        return target is ANY or target.kind in ("array", "map", "function", "location")
    if value is UNKNOWN or target is UNKNOWN:
        return False
    return target is ANY or value.name == target.name

"""Which known types an operator accepts, and what it gives (spec 5.3 and 5.4)."""

from __future__ import annotations

from collections.abc import Callable

from .types import (
    BOOL,
    BYTES,
    DURATION,
    FLOAT,
    INT,
    STRING,
    TIME,
    UNKNOWN,
    Type,
    array_of,
    assignable,
)

__all__ = ["Refused", "binary_type", "comparable", "conditional_type", "unary_type"]


class Refused(Exception):
    """A static check says no; the text is the message for the user."""


def unary_type(op: str, operand: Type) -> Type:
    """The type of a prefix operation; raises Refused."""
    if op in ("!", "not"):
        if operand.is_bool or operand.is_unknown:
            return BOOL
    elif operand.is_number:
        return operand
    elif operand.is_unknown:
        return UNKNOWN
    raise Refused(f"invalid operation: {op} (mismatched type {operand})")


def binary_type(op: str, left: Type, right: Type) -> Type:
    """The type of an infix operation; raises Refused."""
    result = _RULES[op](left, right)
    if result is None:
        raise Refused(f"invalid operation: {op} (mismatched types {left} and {right})")
    return result


def comparable(left: Type, right: Type) -> bool:
    """Whether `==` accepts two types."""
    if left.is_unknown or right.is_unknown or left.is_nil or right.is_nil:
        return True
    if (left.is_number and right.is_number) or (left.is_array and right.is_array):
        return True
    return left.name == right.name


def conditional_type(then: Type, otherwise: Type) -> Type:
    """The type of a conditional whose branches have these types."""
    if then.is_nil or otherwise.is_nil:
        return otherwise if then.is_nil else then
    if not assignable(then, otherwise):
        return UNKNOWN
    if then.is_array and otherwise.is_array:
        forth = assignable(then.item, otherwise.item)
        if not (forth and assignable(otherwise.item, then.item)):
            return array_of(UNKNOWN)
    return then


def _open(left: Type, right: Type, *kinds: str) -> bool:
    """Whether at least one side is unknown and the other is one of the kinds, or unknown too."""
    if left.is_unknown:
        return right.is_unknown or right.kind in kinds
    return right.is_unknown and left.kind in kinds


def _combined(left: Type, right: Type) -> Type:
    return FLOAT if left.is_float or right.is_float else INT


def _equality(left: Type, right: Type) -> Type | None:
    return BOOL if comparable(left, right) else None


def _logic(left: Type, right: Type) -> Type | None:
    both = left.is_bool and right.is_bool
    return BOOL if both or _open(left, right, "bool") else None


def _order(left: Type, right: Type) -> Type | None:
    if left.is_number and right.is_number:
        return BOOL
    if left.kind == right.kind and left.kind in ("string", "time", "duration"):
        return BOOL
    kinds = ("integer", "float", "string", "time", "duration")
    return BOOL if _open(left, right, *kinds) else None


def _add(left: Type, right: Type) -> Type | None:
    if left.is_number and right.is_number:
        return _combined(left, right)
    match (left.kind, right.kind):
        case ("string", "string"):
            return STRING
        case ("time", "duration") | ("duration", "time"):
            return TIME
        case ("duration", "duration"):
            return DURATION
    kinds = ("integer", "float", "string", "time", "duration")
    return UNKNOWN if _open(left, right, *kinds) else None


def _subtract(left: Type, right: Type) -> Type | None:
    if left.is_number and right.is_number:
        return _combined(left, right)
    match (left.kind, right.kind):
        case ("time", "time") | ("duration", "duration"):
            return DURATION
        case ("time", "duration"):
            return TIME
    kinds = ("integer", "float", "time", "duration")
    return UNKNOWN if _open(left, right, *kinds) else None


def _multiply(left: Type, right: Type) -> Type | None:
    if left.is_number and right.is_number:
        return _combined(left, right)
    factors = ("integer", "float", "duration")
    if left.kind in factors and right.kind in factors:
        return DURATION
    return UNKNOWN if _open(left, right, *factors) else None


def _divide(left: Type, right: Type) -> Type | None:
    both = left.is_number and right.is_number
    return FLOAT if both or _open(left, right, "integer", "float") else None


def _modulo(left: Type, right: Type) -> Type | None:
    both = left.is_integer and right.is_integer
    return INT if both or _open(left, right, "integer") else None


def _range(left: Type, right: Type) -> Type | None:
    both = left.is_integer and right.is_integer
    return array_of(INT) if both or _open(left, right, "integer") else None


def _contains(left: Type, right: Type) -> Type | None:
    both = left.is_string and right.is_string
    return BOOL if both or _open(left, right, "string") else None


def _matches(left: Type, right: Type) -> Type | None:
    if left == BYTES and right.is_string:
        return BOOL
    return _contains(left, right)


def _coalesce(left: Type, right: Type) -> Type | None:
    if left.is_nil or right.is_nil:
        return right if left.is_nil else left
    return left if assignable(right, left) else UNKNOWN


def _in(left: Type, right: Type) -> Type | None:
    if right.is_struct and (left.is_string or left.is_unknown):
        return BOOL
    if right.is_map and right.key is not None:
        if not left.is_unknown and not assignable(left, right.key):
            raise Refused(f"cannot use {left} as type {right.key} in map key")
        return BOOL
    if right.is_array:
        if not comparable(left, right.item):
            raise Refused(f"cannot use {left} as type {right.item} in array")
        return BOOL
    if right.is_unknown or (left.is_unknown and right.is_string):
        return BOOL
    return None


_Rule = Callable[[Type, Type], Type | None]

_RULES: dict[str, _Rule] = {
    **dict.fromkeys(["==", "!="], _equality),
    **dict.fromkeys(["and", "&&", "or", "||"], _logic),
    **dict.fromkeys(["<", "<=", ">", ">="], _order),
    **dict.fromkeys(["contains", "startsWith", "endsWith"], _contains),
    **dict.fromkeys(["**", "^", "/"], _divide),
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "%": _modulo,
    "..": _range,
    "in": _in,
    "matches": _matches,
    "??": _coalesce,
}

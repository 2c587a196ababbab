"""Dynamic arguments: what the checker could not know is looked at when the call happens."""

from __future__ import annotations

from mqlite.expr.errors import Fault
from mqlite.expr.values import Uint8, Value, go_name

__all__ = ["elements", "need_string"]


def need_string(value: Value) -> str:
    """A value that must be a string; raises Fault if it is not."""
    if type(value) is str:
        return value
    found = "nil" if value is None else go_name(value)
    raise Fault(f"interface conversion: interface {{}} is {found}, not string")


def elements(value: Value) -> list[Value]:
    """The elements of an array of any type, in a new list."""
    if isinstance(value, bytes):
        return [Uint8(byte) for byte in value]
    return list(value)

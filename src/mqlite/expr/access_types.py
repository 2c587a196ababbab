"""What a member or an element of a known type is (spec 5.3, 7.1 to 7.3)."""

from __future__ import annotations

from .operator_types import Refused
from .types import UNKNOWN, Type, assignable

__all__ = ["KeyRefused", "got_type", "member_type"]


class KeyRefused(Exception):
    """The static check refuses the key, not the access as such."""


def member_type(base: Type, key: Type, name: object, *, method: bool) -> Type:
    """The type of base[key], where `name` is the key if it is a literal string.

    Raises Refused or KeyRefused.
    """
    if base.is_unknown:
        return UNKNOWN
    if base.is_map and base.key is not None:
        return _map_value(base, base.key, key)
    if base.is_array:
        if not key.is_integer and not key.is_unknown:
            raise KeyRefused(f"array elements can only be selected using an integer (got {key})")
        return base.item
    if isinstance(name, str):
        shown = "nil" if base.is_nil else base
        raise Refused(f"type {shown} has no {'method' if method else 'field'} {name}")
    raise Refused(f"type {base}[{key}] is undefined")


def got_type(base: Type, key: Type) -> Type:
    """The type of get(base, key); raises Refused or KeyRefused."""
    if base.is_unknown:
        return UNKNOWN
    if base.is_map and base.key is not None:
        return _map_value(base, base.key, key)
    if not base.is_array:
        raise Refused(f"type {base} does not support indexing")
    if not key.is_integer and not key.is_unknown:
        raise KeyRefused(f"non-integer slice index {key}")
    return base.item


def _map_value(base: Type, wanted: Type, key: Type) -> Type:
    if not key.is_unknown and not assignable(key, wanted):
        raise KeyRefused(f"cannot use {key} to get an element from {base}")
    return base.item

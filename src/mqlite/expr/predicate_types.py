"""Static rules of the builtins that take a predicate (spec 8 and 5.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .types import ARRAY, BOOL, GROUPS, INT, UNKNOWN, Type, array_of

__all__ = ["RULES", "Rule"]

Result = Callable[[Type, Type | None], Type]


@dataclass(frozen=True, slots=True)
class Rule:
    """How one builtin treats its body and what it gives, from collection and body types."""

    result: Result
    wants_bool: bool = False
    pointers: Mapping[str, Type] = field(default_factory=dict)


def _element(collection: Type, _: Type | None) -> Type:
    return collection.item if collection.is_array else UNKNOWN


def _same(collection: Type, _: Type | None) -> Type:
    return array_of(collection.item) if collection.is_array else ARRAY


def _summed(collection: Type, body: Type | None) -> Type:
    return _element(collection, None) if body is None else body


def _body(_: Type, body: Type | None) -> Type:
    return UNKNOWN if body is None else body


def _mapped(_: Type, body: Type | None) -> Type:
    return array_of(UNKNOWN if body is None else body)


def _always(result: Type) -> Result:
    return lambda collection, body: result


RULES: dict[str, Rule] = {
    **{name: Rule(_always(BOOL), wants_bool=True) for name in ("all", "none", "any", "one")},
    **{name: Rule(_element, wants_bool=True) for name in ("find", "findLast")},
    **{name: Rule(_always(INT), wants_bool=True) for name in ("findIndex", "findLastIndex")},
    "filter": Rule(_same, wants_bool=True),
    "count": Rule(_always(INT), wants_bool=True),
    "map": Rule(_mapped, pointers={"index": INT}),
    "sum": Rule(_summed),
    "groupBy": Rule(_always(GROUPS)),
    "sortBy": Rule(_same),
    "reduce": Rule(_body, pointers={"index": INT, "acc": UNKNOWN}),
}

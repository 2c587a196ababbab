"""Tells whoever misspelled a field of a request which ones there are."""

from __future__ import annotations

import re
from typing import Any, Final, get_args

import msgspec

_UNKNOWN: Final = re.compile(r"Object contains unknown field `.*?`(?: - at `\$(.*)`)?", re.DOTALL)
_LONGEST: Final = 1000  # a field's name may be as long as the request
_STEP: Final = re.compile(r"\.(\w+)")


def with_known_fields(problem: str, kind: Any) -> str:
    """msgspec's text for a failed decoding of `kind`; of an unknown field with the known ones
    of the object it stands in."""
    found = _UNKNOWN.fullmatch(problem) if len(problem) <= _LONGEST else None
    if found is None:
        return problem
    struct = _struct(kind)
    for name in _STEP.findall(found[1] or ""):
        struct = struct and _struct(_types(struct).get(name))
    return f"{problem}: it may have {', '.join(_types(struct))}" if struct else problem


def _types(struct: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.encode_name: field.type for field in msgspec.structs.fields(struct)}


def _struct(kind: Any) -> type[msgspec.Struct] | None:
    """The struct among what a field may hold: itself, in a list, or None."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind
    return next(filter(None, map(_struct, get_args(kind))), None)

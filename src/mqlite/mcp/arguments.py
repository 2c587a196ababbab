"""The arguments of a tool: what is advertised for them, and the check that holds callers to it.

The SDK advertises a schema and applies none. Nothing is converted here: an agent that
misspells an argument or quotes a number is told so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from mqlite.errors import InvalidArgument

_MAX_INTEGER: Final = 2**63 - 1


class Kind(NamedTuple):
    """A JSON type and the words for it in an error; of an array also the kind of its items, of
    a closed vocabulary its words."""

    type: str
    words: str
    items: Kind | None = None
    accepted: Sequence[str] = ()

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": self.type}
        if self.items:
            schema["items"] = self.items.schema()
        if self.accepted:
            schema["enum"] = list(self.accepted)
        return schema


TEXT: Final = Kind("string", "a string")
INTEGER: Final = Kind("integer", "an integer")
SWITCH: Final = Kind("boolean", "true or false")


def one_of(accepted: Sequence[str]) -> Kind:
    return Kind("string", f"one of {', '.join(accepted)}", accepted=accepted)


def array_of(items: Kind) -> Kind:
    return Kind("array", f"an array, each item {items.words}", items)


class Argument(NamedTuple):
    name: str
    kind: Kind
    about: str
    required: bool = True


def schema(expected: Sequence[Argument]) -> dict[str, Any]:
    """The JSON schema of an object with these arguments and no others."""
    return {
        "type": "object",
        "properties": {
            argument.name: {**argument.kind.schema(), "description": argument.about}
            for argument in expected
        },
        "required": [argument.name for argument in expected if argument.required],
        "additionalProperties": False,
    }


def check(expected: Sequence[Argument], given: Mapping[str, Any]) -> None:
    """Raise InvalidArgument, naming the argument that is unknown, missing, mistyped or not of
    its vocabulary. No value is repeated: it may be a secret."""
    known = {argument.name: argument for argument in expected}
    for name, value in given.items():
        if name not in known:
            accepted = ", ".join(known) or "none"
            raise InvalidArgument(f"unknown argument {name!r}; this tool takes {accepted}")
        _check_kind(name, known[name].kind, value)
    for name, argument in known.items():
        if argument.required and name not in given:
            raise InvalidArgument(f"{name} is missing; it must be {argument.kind.words}")


def _check_kind(name: str, kind: Kind, value: object) -> None:
    found = _type_of(value)
    if found != kind.type:
        raise InvalidArgument(f"{name} must be {kind.words}, got {found}")
    if kind.accepted and value not in kind.accepted:
        raise InvalidArgument(f"{name} must be {kind.words}")
    if kind.items and isinstance(value, list):
        for position, item in enumerate(value):
            _check_kind(f"{name}[{position}]", kind.items, item)


def _type_of(value: object) -> str:
    """The JSON type of a value, or why it is none that a broker can read."""
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer" if abs(value) <= _MAX_INTEGER else "a number beyond 64 bits"
        case float():
            return "a number with a fraction or an exponent"
        case str():
            return "string" if _encodable(value) else "text with a lone surrogate"
        case list():
            return "array"
        case None:
            return "null"
        case _:
            return "object"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

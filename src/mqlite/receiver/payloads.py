"""JSON bodies as typed values."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from typing import Any, Final

import msgspec

from mqlite.api import Handler
from mqlite.errors import InvalidArgument
from mqlite.messages import BaseMessage
from mqlite.receiver.handlers import Arguments
from mqlite.receiver.outcomes import InvalidPayload

_LONGEST: Final = 500
_QUOTING: Final = re.compile(
    r"(Invalid (?:enum )?value|Input tag) .*?( - at `[^`]*`| found using '\w+' does.*)?", re.DOTALL
)
"""What msgspec and pydantic say of a value that is none of those allowed: with the value."""


def arguments_for(handler: Handler, kind: Any) -> Arguments:
    """What to call this handler with: the message, or, with a `kind`, the body as that, and
    the message too if it takes two arguments.

    Raises InvalidArgument for a kind that JSON cannot be decoded to, and for a handler that
    every message would fail with, or none be handled by.
    """
    if not callable(handler):
        raise InvalidArgument(f"handler must be a function, got {type(handler).__name__}")
    if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
        raise InvalidArgument("handler must not be a generator: calling it would do nothing")
    needed = _needed(handler, 1 if kind is None else 2)
    if kind is None:
        return lambda message: (message,)
    decode = _decoder(kind)
    if needed > 1:
        return lambda message: (_decoded(decode, message), message)
    return lambda message: (_decoded(decode, message),)


def _needed(handler: Handler, most: int) -> int:
    """How many arguments it has to be called with. Raises InvalidArgument where that is none
    or more than there are."""
    try:
        signature = inspect.signature(handler)
    except (TypeError, ValueError):  # what is not written in Python may not tell
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = signature.parameters.values()
    needed = max(sum(p.kind in positional and p.default is p.empty for p in parameters), 1)
    try:
        signature.bind(*[None] * min(needed, most))
    except TypeError as error:
        given = "the message" if most == 1 else "the value and, if it takes two, the message"
        raise InvalidArgument(f"handler must take {given}: {error}") from None
    return needed


def _decoded(decode: Callable[[bytes], Any], message: BaseMessage) -> Any:
    """Raises InvalidPayload, naming the field that does not fit and none of the body."""
    try:
        return decode(message.body)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        problem = _problem(error).encode(errors="backslashreplace").decode()
        raise InvalidPayload(problem[:_LONGEST]) from None


def _problem(error: Exception) -> str:
    details = getattr(error, "errors", None)
    if details is None:
        return _unquoted(str(error))
    # Pydantic's: its text quotes the input.
    found = details(include_input=False, include_url=False, include_context=False)
    return "; ".join(
        f"{'.'.join(map(str, each['loc'])) or '$'}: {_unquoted(each['msg'])}" for each in found
    )


def _unquoted(problem: str) -> str:
    if quoting := _QUOTING.fullmatch(problem):
        return quoting[1] + (quoting[2] or "")
    return problem


def _decoder(kind: Any) -> Callable[[bytes], Any]:
    if not hasattr(kind, "__pydantic_validator__"):
        try:
            if not _unknown_to_msgspec(msgspec.inspect.type_info(kind)):
                return msgspec.json.Decoder(kind).decode
        except TypeError as error:
            if "custom type" not in str(error):  # that is, one to be left to others
                raise InvalidArgument(f"type cannot be decoded from JSON: {error}") from None
    if pydantic := sys.modules.get("pydantic"):
        try:
            validate: Callable[[bytes], Any] = pydantic.TypeAdapter(kind).validate_json
            return validate
        except pydantic.errors.PydanticUserError as error:
            raise InvalidArgument(f"type cannot be decoded from JSON: {error.message}") from None
    raise InvalidArgument(
        f"type cannot be decoded from JSON: {kind!r}; use a msgspec.Struct, a dataclass, a"
        " TypedDict, a pydantic model, or builtin types of these"
    )


def _unknown_to_msgspec(info: Any) -> bool:
    """Whether there is a class somewhere in a type that msgspec leaves to others."""
    seen: set[int] = set()

    def search(node: Any) -> bool:
        if isinstance(node, list | tuple):
            return any(map(search, node))
        if not isinstance(node, msgspec.inspect.Type | msgspec.inspect.Field) or id(node) in seen:
            return False
        seen.add(id(node))
        if isinstance(node, msgspec.inspect.CustomType):
            return True
        return any(search(getattr(node, name)) for name in node.__struct_fields__)

    return search(info)

"""What the language knows about each builtin, and how the families of builtins declare theirs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from mqlite.expr.operator_types import Refused
from mqlite.expr.types import Signature, Type, function_type

__all__ = ["BUILTINS", "Builtin", "builtin", "exactly", "go_kind", "judged", "shown", "signature"]

Judge: TypeAlias = Callable[[list[Type]], Type]
Implementation: TypeAlias = Callable[..., Any]

_OPEN_FUNCTION = Type("func(...interface {}) (interface {}, error)", "function")


@dataclass(frozen=True, slots=True)
class Builtin:
    """A builtin: how its arguments are checked, and what it does.

    Either one of the `signatures` must fit or the `judge` decides, raising Refused. At run time
    `call` gets the evaluation's Budget and the arguments, of which it must expect any value.
    """

    name: str
    call: Implementation
    signatures: tuple[Signature, ...] = ()
    judge: Judge | None = None
    shown: Type | None = None

    def takes(self, count: int) -> bool:
        """Whether `call` can be called with so many arguments.

        The checker has seen to that, except where the reference does not check at all.
        """
        return _takes(self.call, count)

    @property
    def type(self) -> Type:
        """The type of its bare name, which can be looked at but not used."""
        if self.shown is not None:
            return self.shown
        return function_type(self.signatures[0]) if self.signatures else _OPEN_FUNCTION


BUILTINS: dict[str, Builtin] = {}


@cache
def _takes(call: Implementation, count: int) -> bool:
    try:
        inspect.signature(call).bind(None, *[None] * count)
    except TypeError:
        return False
    return True


def signature(*parameters: Type, gives: Type) -> Signature:
    """A signature, to be read from left to right."""
    return Signature(parameters, gives)


def builtin(name: str, *signatures: Signature) -> Callable[[Implementation], Implementation]:
    """Declare a builtin with fixed signatures."""

    def declare(call: Implementation) -> Implementation:
        BUILTINS[name] = Builtin(name, call, signatures)
        return call

    return declare


def judged(name: str, judge: Judge) -> Callable[[Implementation], Implementation]:
    """Declare a builtin that judges the types of its arguments itself."""

    def declare(call: Implementation) -> Implementation:
        BUILTINS[name] = Builtin(name, call, judge=judge)
        return call

    return declare


def go_kind(type: Type) -> str:
    """The kind by which builtins judge: named integers count as integers."""
    return "integer" if type.kind in ("duration", "month", "weekday") else type.kind


def exactly(count: int, types: list[Type]) -> None:
    """Refuse any other number of arguments."""
    if len(types) != count:
        raise Refused(f"invalid number of arguments (expected {count}, got {len(types)})")


def shown(type: Type) -> str:
    """A type as judges' messages show it; nil has none to show."""
    return "%!s(<nil>)" if type.is_nil else type.name

"""What an expression may name: typed variables and functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from .types import Signature, Type, struct_type

__all__ = ["Env", "Function"]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the environment.

    Calls are checked against the signature as far as argument types are known; a dynamic argument
    may be any value, so `call` must cope, raising `Fault` to refuse one.
    """

    signature: Signature
    call: Callable[..., Any]


@dataclass(frozen=True)
class Env:
    """The statically typed names an expression is compiled against.

    `functions` go before builtins of the same name; `disabled` builtins do not exist at all.
    `type_name` is how messages call the environment itself (`$env`), and `fields` are other names
    by which `$env`, and only it, knows variables: to the reference it is a Go struct.
    """

    variables: Mapping[str, Type] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    disabled: Collection[str] = frozenset()
    type_name: str = "env"
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def type(self) -> Type:
        """The type of `$env`."""
        return struct_type(self.type_name)

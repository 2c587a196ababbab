"""Checking arguments against signatures (spec 5.5)."""

from __future__ import annotations

from .types import ANY, Signature, Type, assignable

__all__ = ["Misfit", "argument_misfit", "count_misfit"]


class Misfit(Exception):
    """Arguments do not fit; `argument` is the index of the one at fault, None for their number."""

    def __init__(self, message: str, argument: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.argument = argument


def count_misfit(name: str, signature: Signature, count: int) -> Misfit | None:
    """What is wrong with calling with so many arguments, if anything."""
    wanted = len(signature.parameters)
    if count == wanted:
        return None
    return Misfit(f"{'too many' if count > wanted else 'not enough'} arguments to call {name}")


def argument_misfit(name: str, wanted: Type, given: Type, index: int) -> Misfit | None:
    """What is wrong with an argument of this type, if anything."""
    if _accepts(wanted, given):
        return None
    # The reference ends this message with a blank, except for nil.
    shown, end = ("nil", "") if given.is_nil else (given, " ")
    return Misfit(f"cannot use {shown} as argument (type {wanted}) to call {name}{end}", index)


def _accepts(wanted: Type, given: Type) -> bool:
    if given.is_nil:
        return wanted is ANY
    if wanted.is_integer and given.is_integer:
        return True
    if wanted.is_float and given.is_integer:
        return True
    return given.is_unknown or assignable(given, wanted)

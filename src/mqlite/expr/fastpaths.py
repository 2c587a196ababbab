"""Shortcuts for what filters do most: read a variable's member and compare it with a literal.

They only leave out questions that have been answered at compile time; what they cannot do they hand
on to the general operation.
"""

from __future__ import annotations

from .access import fetch
from .budget import Budget
from .errors import Fault
from .forms import Apply, Code, Constant, Form, Values, Variable
from .nodes import Member
from .operations import equal_strings
from .types import STRING_MAP, STRINGS
from .values import Value

__all__ = ["equal_to_literal", "known_member"]


def known_member(node: Member, base: Form, key: Form) -> Form | None:
    """A fast member of a variable that is known to be a map or an array of strings."""
    if node.optional or not isinstance(base, Variable) or not isinstance(key, Constant):
        return None
    if node.base.type == STRING_MAP and type(key.value) is str:
        return _MapMember(fetch, node.pos, base, key)
    if node.base.type == STRINGS and type(key.value) is int and key.value >= 0:
        return _ArrayItem(fetch, node.pos, base, key)
    return None


def equal_to_literal(left: Form, right: Form, pos: int) -> Form | None:
    """A fast comparison with a string literal."""
    if isinstance(right, Constant) and type(right.value) is str:
        return _EqualToLiteral(equal_strings, pos, left, right)
    return None


class _MapMember(Apply):
    """A variable's member under a literal key."""

    def closure(self) -> Code:
        name, key = _names(self)

        def member(values: Values, budget: Budget) -> Value:
            return values[name].get(key, "")

        return member


class _ArrayItem(Apply):
    """A variable's element at a literal index that is not negative."""

    def closure(self) -> Code:
        name, index = _names(self)
        pos = self.pos

        def item(values: Values, budget: Budget) -> Value:
            array = values[name]
            if index < len(array):
                return array[index]
            try:
                return fetch(budget, array, index)
            except Fault as fault:
                raise fault.at(pos) from None

        return item


def _names(form: Apply) -> tuple[str, Value]:
    variable, key = form.parts
    assert isinstance(variable, Variable)
    assert isinstance(key, Constant)
    return variable.name, key.value


class _EqualToLiteral(Apply):
    """A value that was known to be a string against a literal."""

    def closure(self) -> Code:
        left, right = self.parts
        assert isinstance(right, Constant)
        literal = right.value
        if isinstance(left, Variable):
            return _variable_equals(left.name, literal)
        if isinstance(left, _MapMember):
            return _member_equals(*_names(left), literal)
        if isinstance(left, _ArrayItem):
            return _item_equals(*_names(left), literal, left.closure())
        return _value_equals(left.code, literal, self.pos)


def _variable_equals(name: str, literal: str) -> Code:
    return lambda values, budget: values[name] == literal


def _member_equals(name: str, key: str, literal: str) -> Code:
    return lambda values, budget: values[name].get(key, "") == literal


def _item_equals(name: str, index: int, literal: str, item: Code) -> Code:
    def equal(values: Values, budget: Budget) -> Value:
        try:
            return values[name][index] == literal
        except IndexError:
            return item(values, budget) == literal

    return equal


def _value_equals(value_of: Code, literal: str, pos: int) -> Code:
    def equal(values: Values, budget: Budget) -> bool:
        value = value_of(values, budget)
        if type(value) is str:
            return value == literal
        try:
            return equal_strings(budget, value, literal)
        except Fault as fault:
            raise fault.at(pos) from None

    return equal

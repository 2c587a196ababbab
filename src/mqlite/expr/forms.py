"""Executable forms: what a checked tree is turned into, and the two ways each is evaluated.

As a *closure*: Python functions calling each other, fast, but each level of the expression takes
a level of Python's stack. As *steps*: generators on a trampoline, slow, for expressions of any
depth. A form picks by its height; the parts of a deep form that are not deep themselves still run
as closures.

Closures and steps take the values of the environment and the evaluation's `Budget`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TypeAlias

from . import trampoline
from .budget import Budget
from .errors import Fault
from .trampoline import Steps
from .values import Value, is_nil

__all__ = [
    "AllValues",
    "Apply",
    "ChainEnd",
    "Code",
    "Compound",
    "Constant",
    "Form",
    "Local",
    "Spine",
    "Store",
    "Values",
    "Variable",
    "evaluate",
]

Values: TypeAlias = Mapping[str, Value]
Code: TypeAlias = Callable[[Values, Budget], Value]

MAX_CLOSURE_HEIGHT = 60
"""How many closures may be inside each other; Python's stack allows a thousand, for everybody."""

ENDED = object()
"""What is passed up an optional chain once it has met nil."""


class Form(ABC):
    """An executable form; one without parts is evaluated as a closure only."""

    height: int = 1

    @cached_property
    def code(self) -> Code:
        """The form as a function, whatever its height."""
        return self.closure()

    @abstractmethod
    def closure(self) -> Code:
        """The form as a closure over those of its parts."""


class Compound(Form):
    """A form that has parts."""

    def __init__(self, *parts: Form) -> None:
        self.height = 1 + max((part.height for part in parts), default=0)

    @cached_property
    def code(self) -> Code:
        if self.height <= MAX_CLOSURE_HEIGHT:
            return self.closure()
        return lambda values, budget: trampoline.run(self.steps(values, budget))

    @abstractmethod
    def steps(self, values: Values, budget: Budget) -> Steps[Value]:
        """The form's evaluation, yielding that of its parts."""


def evaluate(form: Form, values: Values, budget: Budget) -> Steps[Value]:
    """A part's evaluation, as a step of the whole."""
    if form.height <= MAX_CLOSURE_HEIGHT or not isinstance(form, Compound):
        return form.code(values, budget)
    value: Value = yield form.steps(values, budget)
    return value


class Constant(Form):
    """A value known beforehand."""

    def __init__(self, value: Value) -> None:
        self.value = value

    def closure(self) -> Code:
        value = self.value
        return lambda values, budget: value


class Variable(Form):
    """A variable of the environment."""

    def __init__(self, name: str) -> None:
        self.name = name

    def closure(self) -> Code:
        name = self.name
        return lambda values, budget: values[name]


class AllValues(Form):
    """The values of all variables at once, for what `$env` is."""

    def closure(self) -> Code:
        return lambda values, budget: values


class Local(Form):
    """A `let` name, a pointer, or an operand remembered."""

    def __init__(self, slot: int) -> None:
        self.slot = slot

    def closure(self) -> Code:
        slot = self.slot
        return lambda values, budget: budget.locals[slot]


class Store(Compound):
    """A value that is also kept in a slot."""

    def __init__(self, slot: int, value: Form) -> None:
        super().__init__(value)
        self.slot = slot
        self.value = value

    def closure(self) -> Code:
        slot, value = self.slot, self.value.code

        def store(values: Values, budget: Budget) -> Value:
            kept = budget.locals[slot] = value(values, budget)
            return kept

        return store

    def steps(self, values: Values, budget: Budget) -> Steps[Value]:
        kept: Value = yield evaluate(self.value, values, budget)
        budget.locals[self.slot] = kept
        return kept


class Apply(Compound):
    """A function of the values of all parts; it gets the budget first."""

    def __init__(self, function: Callable[..., Value], pos: int, *parts: Form) -> None:
        super().__init__(*parts)
        self.function = function
        self.pos = pos
        self.parts = parts

    def closure(self) -> Code:
        function, pos = self.function, self.pos
        codes = [part.code for part in self.parts]
        last = self.parts[-1] if self.parts else None
        if len(codes) == 2 and isinstance(last, Constant):
            return _apply_to_constant(function, pos, codes[0], last.value)
        if len(codes) == 2:
            return _apply_two(function, pos, *codes)
        if len(codes) == 1:
            return _apply_one(function, pos, *codes)

        def apply(values: Values, budget: Budget) -> Value:
            arguments = [code(values, budget) for code in codes]
            try:
                return function(budget, *arguments)
            except Fault as fault:
                raise fault.at(pos) from None

        return apply

    def steps(self, values: Values, budget: Budget) -> Steps[Value]:
        arguments: list[Value] = []
        for part in self.parts:
            arguments.append((yield evaluate(part, values, budget)))
        try:
            return self.function(budget, *arguments)
        except Fault as fault:
            raise fault.at(self.pos) from None


def _apply_one(function: Callable[..., Value], pos: int, part: Code) -> Code:
    def apply(values: Values, budget: Budget) -> Value:
        argument = part(values, budget)
        try:
            return function(budget, argument)
        except Fault as fault:
            raise fault.at(pos) from None

    return apply


def _apply_to_constant(function: Callable[..., Value], pos: int, first: Code, right: Value) -> Code:
    def apply(values: Values, budget: Budget) -> Value:
        left = first(values, budget)
        try:
            return function(budget, left, right)
        except Fault as fault:
            raise fault.at(pos) from None

    return apply


def _apply_two(function: Callable[..., Value], pos: int, first: Code, second: Code) -> Code:
    def apply(values: Values, budget: Budget) -> Value:
        left = first(values, budget)
        right = second(values, budget)
        try:
            return function(budget, left, right)
        except Fault as fault:
            raise fault.at(pos) from None

    return apply


class Spine(Compound):
    """A link of a chain of members and calls: does nothing once the chain has ended.

    Arguments of a call come before what is called, the key of a member after its base.
    """

    def __init__(
        self,
        function: Callable[..., Value],
        pos: int,
        base: Form,
        *others: Form,
        optional: bool = False,
        others_first: bool = False,
    ) -> None:
        super().__init__(base, *others)
        self.function = function
        self.pos = pos
        self.base = base
        self.others = others
        self.optional = optional
        self.others_first = others_first

    def closure(self) -> Code:
        function, pos, base = self.function, self.pos, self.base.code
        optional, others_first = self.optional, self.others_first
        others = [other.code for other in self.others]
        if len(others) == 1 and not others_first:
            return _member(function, pos, base, others[0], optional)

        def link(values: Values, budget: Budget) -> Value:
            arguments = [code(values, budget) for code in others] if others_first else []
            value = base(values, budget)
            if value is ENDED or (optional and is_nil(value)):
                return ENDED
            if not others_first:
                arguments = [code(values, budget) for code in others]
            try:
                return function(budget, value, *arguments)
            except Fault as fault:
                raise fault.at(pos) from None

        return link

    def steps(self, values: Values, budget: Budget) -> Steps[Value]:
        arguments: list[Value] = []
        if self.others_first:
            for other in self.others:
                arguments.append((yield evaluate(other, values, budget)))
        value: Value = yield evaluate(self.base, values, budget)
        if value is ENDED or (self.optional and is_nil(value)):
            return ENDED
        if not self.others_first:
            for other in self.others:
                arguments.append((yield evaluate(other, values, budget)))
        try:
            return self.function(budget, value, *arguments)
        except Fault as fault:
            raise fault.at(self.pos) from None


def _member(
    function: Callable[..., Value], pos: int, base: Code, key: Code, optional: bool
) -> Code:
    def member(values: Values, budget: Budget) -> Value:
        value = base(values, budget)
        if value is ENDED or (optional and is_nil(value)):
            return ENDED
        name = key(values, budget)
        try:
            return function(budget, value, name)
        except Fault as fault:
            raise fault.at(pos) from None

    return member


class ChainEnd(Compound):
    """The outer end of an optional chain: nil, and nothing like it, if so the chain ends."""

    def __init__(self, inner: Form) -> None:
        super().__init__(inner)
        self.inner = inner

    def closure(self) -> Code:
        inner = self.inner.code

        def chain(values: Values, budget: Budget) -> Value:
            value = inner(values, budget)
            return None if value is ENDED or is_nil(value) else value

        return chain

    def steps(self, values: Values, budget: Budget) -> Steps[Value]:
        value: Value = yield evaluate(self.inner, values, budget)
        return None if value is ENDED or is_nil(value) else value

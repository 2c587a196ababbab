"""Executable forms that decide what is evaluated, and how often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .budget import Budget
from .builtins.loops import UNREADABLE, Loop, begin, opened, readable, truth
from .errors import Fault
from .forms import Code, Compound, Constant, Form, Values, evaluate
from .trampoline import Steps
from .values import Value, is_nil

__all__ = ["Block", "Choose", "Coalesce", "Element", "Logic", "LoopOver"]


class Logic(Compound):
    """`and` or `or`: the left value if it decides, which must be a boolean, else the right one."""

    def __init__(self, decided_by: bool, pos: int, left: Form, right: Form) -> None:
        super().__init__(left, right)
        self.decided_by = decided_by
        self.pos = pos
        self.left = left
        self.right = right

    def closure(self) -> Code:
        pos, left, right = self.pos, self.left.code, self.right.code

        def both(values: Values, budget: Budget) -> Value:
            value = left(values, budget)
            if value is True:
                return right(values, budget)
            if value is not False:
                _refuse_condition(value, pos)
            return False

        def either(values: Values, budget: Budget) -> Value:
            value = left(values, budget)
            if value is False:
                return right(values, budget)
            if value is not True:
                _refuse_condition(value, pos)
            return True

        return either if self.decided_by else both

    def steps(self, values: Values, budget: Budget) -> Steps[Value]:
        value: Value = yield evaluate(self.left, values, budget)
        if value is self.decided_by:
            return value
        if value is not True and value is not False:
            _refuse_condition(value, self.pos)
        value = yield evaluate(self.right, values, budget)
        return value


def _refuse_condition(value: Value, pos: int) -> None:
    try:
        truth(value)
    except Fault as fault:
        raise fault.at(pos) from None


class Choose(Compound):
    """A conditional; without `then` the condition's value is the result if it is true."""

    def __init__(self, pos: int, condition: Form, then: Form | None, otherwise: Form) -> None:
        super().__init__(condition, otherwise, *(() if then is None else (then,)))
        self.pos = pos
        self.condition = condition
        self.then = Constant(True) if then is None else then
        self.otherwise = otherwise

    def closure(self) -> Code:
        pos, condition = self.pos, self.condition.code
        then, otherwise = self.then.code, self.otherwise.code

        def choose(values: Values, budget: Budget) -> Value:
            value = condition(values, budget)
            if value is True:
                return then(values, budget)
            if value is not False:
                _refuse_condition(value, pos)
            return otherwise(values, budget)

        return choose

    def steps(self, values: Values, budget: Budget) -> Steps[Value]:
        value: Value = yield evaluate(self.condition, values, budget)
        if value is not True and value is not False:
            _refuse_condition(value, self.pos)
        value = yield evaluate(self.then if value else self.otherwise, values, budget)
        return value


class Coalesce(Compound):
    """`??`"""

    def __init__(self, left: Form, right: Form) -> None:
        super().__init__(left, right)
        self.left = left
        self.right = right

    def closure(self) -> Code:
        left, right = self.left.code, self.right.code

        def coalesce(values: Values, budget: Budget) -> Value:
            value = left(values, budget)
            return right(values, budget) if is_nil(value) else value

        return coalesce

    def steps(self, values: Values, budget: Budget) -> Steps[Value]:
        value: Value = yield evaluate(self.left, values, budget)
        if is_nil(value):
            value = yield evaluate(self.right, values, budget)
        return value


class Block(Compound):
    """Parts one after the other; the last one's value."""

    def __init__(self, *parts: Form) -> None:
        super().__init__(*parts)
        self.parts = parts

    def closure(self) -> Code:
        *before, last = [part.code for part in self.parts]

        def block(values: Values, budget: Budget) -> Value:
            for code in before:
                code(values, budget)
            return last(values, budget)

        return block

    def steps(self, values: Values, budget: Budget) -> Steps[Value]:
        value: Value = None
        for part in self.parts:
            value = yield evaluate(part, values, budget)
        return value


class Element(Form):
    """`#`, unless the loop is over something whose elements cannot be looked at."""

    def __init__(self, slot: int, pos: int) -> None:
        self.slot = slot
        self.pos = pos

    def closure(self) -> Code:
        slot, pos = self.slot, self.pos

        def element(values: Values, budget: Budget) -> Value:
            value = budget.locals[slot]
            if value is not UNREADABLE:
                return value
            try:
                return readable(value)
            except Fault as fault:
                raise fault.at(pos) from None

        return element


class LoopOver(Compound):
    """A predicate builtin: `start` makes its loop from budget, elements, slot and extra values."""

    def __init__(
        self,
        start: Callable[..., Loop],
        pos: int,
        slot: int,
        collection: Form,
        body: Form,
        *extra: Form,
    ) -> None:
        super().__init__(collection, body, *extra)
        self.start = start
        self.pos = pos
        self.slot = slot
        self.collection = collection
        self.body = body
        self.extra = extra

    def closure(self) -> Code:
        pos, slot, start = self.pos, self.slot, self.start
        collection, body = self.collection.code, self.body.code
        extra = [part.code for part in self.extra]

        def loop_over(values: Values, budget: Budget) -> Value:
            gone_over = collection(values, budget)
            try:
                items = opened(budget, gone_over)
            except Fault as fault:
                raise fault.at(pos) from None
            local = budget.locals
            local[slot : slot + 3] = begin(items)
            loop = start(budget, items, slot, [code(values, budget) for code in extra])
            made = None
            while True:
                try:
                    local[slot] = loop.send(made)
                    budget.visit()
                except StopIteration as done:
                    return done.value
                except Fault as fault:
                    raise fault.at(pos) from None
                made = body(values, budget)

        return loop_over

    def steps(self, values: Values, budget: Budget) -> Steps[Value]:
        gone_over: Value = yield evaluate(self.collection, values, budget)
        try:
            items = opened(budget, gone_over)
        except Fault as fault:
            raise fault.at(self.pos) from None
        local = budget.locals
        local[self.slot : self.slot + 3] = begin(items)
        extra: list[Value] = []
        for part in self.extra:
            extra.append((yield evaluate(part, values, budget)))
        loop = self.start(budget, items, self.slot, extra)
        made: Any = None
        while True:
            try:
                local[self.slot] = loop.send(made)
                budget.visit()
            except StopIteration as done:
                return done.value
            except Fault as fault:
                raise fault.at(self.pos) from None
            made = yield evaluate(self.body, values, budget)

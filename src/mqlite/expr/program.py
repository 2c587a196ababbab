"""Compiling an expression and running it."""

from __future__ import annotations

from collections.abc import Mapping

from .budget import Budget
from .builtins import BUILTINS
from .checker import check
from .environment import Env
from .errors import ExprRuntimeError, ExprTypeError, Fault
from .forms import Code
from .gotime import Duration, Location, Month, Time, Weekday
from .lowering import lower
from .nodes import Name, Node, children
from .optimiser import optimise
from .parser import parse
from .text import replace_broken
from .types import Type
from .values import Value, go_name, register_names

__all__ = ["MAX_NODES", "Program", "compile"]

MAX_NODES = 1000
"""How many nodes the syntax tree of an expression may have."""

register_names(
    {
        Time: "time.Time",
        Duration: "time.Duration",
        Month: "time.Month",
        Weekday: "time.Weekday",
        Location: "*time.Location",
    }
)


class Program:
    """A compiled expression. Immutable: threads may share it, each with a budget of its own."""

    __slots__ = ("_code", "_expect_bool", "_locals", "names", "source", "type")

    def __init__(
        self, source: str, type: Type, names: frozenset[str], code: Code, locals: int, expect: bool
    ) -> None:
        self.source = source
        self.type = type
        """What the result is known to be."""
        self.names = names
        """The plain identifiers that are left in the optimised tree."""
        self._code = code
        self._locals = locals
        self._expect_bool = expect

    def run(self, values: Mapping[str, Value], budget: Budget | None = None) -> Value:
        """The expression's value, with a value for each variable of the environment.

        Values are what `values` says for the variable's type: a `[]string` is a tuple, a
        `map[string]string` a StringMap, a time a Time. Evaluations that are given the same `budget` share its work budget; the memory budget is
        each evaluation's own. Raises ExprRuntimeError.
        """
        if budget is None:
            budget = Budget()
        budget.memory = 0
        if self._locals:
            budget.locals = [None] * self._locals
        try:
            result = self._code(values, budget)
        except Fault as fault:
            raise ExprRuntimeError(fault.message, self.source, fault.offset or 0) from None
        if result is True or result is False or not self._expect_bool:
            return result
        if result is None:
            return False
        message = f"invalid operation: bool({go_name(result)})"
        raise ExprRuntimeError(message, self.source, 0)


def compile(
    source: str,
    env: Env | None = None,
    *,
    expect: type[bool] | None = None,
    max_nodes: int = MAX_NODES,
) -> Program:
    """Compile an expression against a typed environment; with `expect=bool`, to a boolean.

    Raises ExprSyntaxError if the text is no expression or has more than `max_nodes` nodes, and
    ExprTypeError if it breaks a rule of the static check.
    """
    env = env or Env()
    source = replace_broken(source)
    available = [name for name in BUILTINS if name not in env.disabled]
    tree = parse(source, builtins=available, overridden=env.functions, max_nodes=max_nodes)
    type = check(tree, env, source)
    expect_bool = bool(expect)
    if expect_bool and not type.is_bool and not type.is_unknown:
        raise ExprTypeError(f"expected bool, but got {type}")
    tree = optimise(tree, source)
    form, local = lower(tree, env)
    return Program(source, type, _names(tree), form.code, local, expect_bool)


def _names(tree: Node) -> frozenset[str]:
    names: set[str] = set()
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, Name):
            names.add(node.name)
        pending.extend(children(node))
    return frozenset(names)

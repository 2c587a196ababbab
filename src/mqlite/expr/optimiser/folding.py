"""Constant folding (spec 14.1 and 14.2)."""

from __future__ import annotations

from mqlite.expr.arithmetic import add, divide, modulo, multiply, negate, power, subtract
from mqlite.expr.budget import Budget
from mqlite.expr.comparison import equal
from mqlite.expr.errors import ExprTypeError
from mqlite.expr.nodes import (
    Array,
    Binary,
    Builtin,
    Constant,
    Literal,
    Node,
    Predicate,
    Unary,
    is_literal,
)
from mqlite.expr.types import BOOL

from .replacing import in_place_of

__all__ = ["Folding"]

_ARITHMETIC = {"+": add, "-": subtract, "*": multiply, "/": divide, "**": power, "^": power}


class Folding:
    """One pass; `changed` says whether another may find more."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.changed = False

    def fold(self, node: Node) -> Node:
        """The node, or what it comes to."""
        folded: Node | None = None
        if isinstance(node, Unary):
            folded = self.unary(node)
        elif isinstance(node, Binary):
            folded = self.binary(node)
        elif isinstance(node, Array):
            folded = self.array(node)
        elif isinstance(node, Builtin):
            folded = self.nested_filters(node)
        if folded is None:
            return node
        self.changed = True
        return in_place_of(node, folded)

    def unary(self, node: Unary) -> Node | None:
        operand = node.operand
        if node.op in ("!", "not") and is_literal(operand, bool):
            return Literal(not operand.value)
        if node.op in ("+", "-") and is_literal(operand, int, float):
            return Literal(operand.value if node.op == "+" else negate(Budget(), operand.value))
        return None

    def binary(self, node: Binary) -> Node | None:
        if node.op in ("and", "&&", "or", "||"):
            return self.logic(node)
        if node.op == "==":
            return self.equality(node)
        left, right = node.left, node.right
        if is_literal(left, str) and is_literal(right, str) and node.op == "+":
            return Literal(add(Budget(), left.value, right.value))
        if not (is_literal(left, int, float) and is_literal(right, int, float)):
            return None
        if node.op in _ARITHMETIC:
            return Literal(_ARITHMETIC[node.op](Budget(), left.value, right.value))
        if node.op == "%" and type(left.value) is type(right.value) is int:
            if right.value == 0:
                raise ExprTypeError("integer divide by zero", self.source, node.pos)
            return Literal(modulo(Budget(), left.value, right.value))
        return None

    def logic(self, node: Binary) -> Node | None:
        """With one side known, the other is the result, or is not looked at at all."""
        neutral = node.op in ("and", "&&")
        for known, other in ((node.left, node.right), (node.right, node.left)):
            if is_literal(known, bool) and known.value is neutral:
                return other
        if is_literal(node.left, bool) or is_literal(node.right, bool):
            return Literal(not neutral)
        return None

    def equality(self, node: Binary) -> Node | None:
        left, right = node.left, node.right
        if isinstance(left, Constant) and isinstance(right, Constant):
            # The only constants at this point are folded arrays.
            return Literal(equal(Budget(), left.value, right.value))
        for kind in (int, str, bool):
            if is_literal(left, kind) and is_literal(right, kind):
                return Literal(left.value == right.value)
        return None

    def array(self, node: Array) -> Node | None:
        values = [item.value for item in node.items if is_literal(item, int, float, str, bool)]
        if not values or len(values) != len(node.items):
            return None
        return Constant(values)

    def nested_filters(self, node: Builtin) -> Node | None:
        inner = node.arguments[0] if node.arguments else None
        if node.name != "filter" or not isinstance(inner, Builtin) or inner.name != "filter":
            return None
        first, second = inner.arguments[1], node.arguments[1]
        if not isinstance(first, Predicate) or not isinstance(second, Predicate):
            return None
        both = Binary("&&", first.body, second.body, pos=node.pos, type=BOOL)
        return Builtin("filter", [inner.arguments[0], Predicate(both, pos=node.pos, type=BOOL)])

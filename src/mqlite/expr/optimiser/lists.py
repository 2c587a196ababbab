"""`in` over a list or a range of literals (spec 14.3 and 14.4)."""

from __future__ import annotations

from mqlite.expr.nodes import Array, Binary, Constant, Literal, Node, Recall, Remember, is_literal
from mqlite.expr.types import BOOL, INT

from .replacing import in_place_of

__all__ = ["in_list_becomes_set", "in_range_becomes_comparison"]


def in_list_becomes_set(node: Node) -> Node:
    """A list of literals that are all strings, or all integers and sought by one, is a set."""
    if not (isinstance(node, Binary) and node.op == "in" and isinstance(node.right, Array)):
        return node
    items = node.right.items
    values = [item.value for item in items if isinstance(item, Literal)]
    integers = node.left.type == INT and all(is_literal(item, int) for item in items)
    if items and (integers or all(is_literal(item, str) for item in items)):
        node.right = in_place_of(node.right, Constant(frozenset(values)))
    return node


def in_range_becomes_comparison(node: Node) -> Node:
    """Whether an integer is in a range of literals is found out without the range."""
    if not (isinstance(node, Binary) and node.op == "in" and node.left.type == INT):
        return node
    span = node.right
    if not (isinstance(span, Binary) and span.op == ".."):
        return node
    if not (is_literal(span.left, int) and is_literal(span.right, int)):
        return node
    sought = Remember(node.left, pos=node.left.pos, type=INT)
    again = Recall(sought, pos=node.left.pos, type=INT)
    low = Binary(">=", sought, span.left, pos=node.pos, type=BOOL)
    high = Binary("<=", again, span.right, pos=node.pos, type=BOOL)
    return in_place_of(node, Binary("and", low, high))

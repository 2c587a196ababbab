"""Two predicates over the same collection become one (spec 14.5)."""

from __future__ import annotations

from mqlite.expr.nodes import Binary, Builtin, Node, Predicate
from mqlite.expr.printer import print_tree
from mqlite.expr.types import BOOL

from .replacing import in_place_of

__all__ = ["predicates_combine"]

# What joins the bodies, by the builtin and by what joins the calls.
_JOINING = {
    **{("all", op): op for op in ("and", "&&")},
    **{("any", op): op for op in ("or", "||")},
    ("none", "and"): "or",
    ("none", "&&"): "||",
}


def predicates_combine(node: Node) -> Node:
    """`all(xs, p) && all(xs, q)`, `any(xs, p) || any(xs, q)`, `none(xs, p) && none(xs, q)`."""
    if not isinstance(node, Binary):
        return node
    left, right = node.left, node.right
    if not (isinstance(left, Builtin) and isinstance(right, Builtin) and left.name == right.name):
        return node
    op = _JOINING.get((left.name, node.op))
    if op is None or print_tree(left.arguments[0]) != print_tree(right.arguments[0]):
        return node
    first, second = left.arguments[1], right.arguments[1]
    if not isinstance(first, Predicate) or not isinstance(second, Predicate):
        return node
    # Joined bodies may in turn be two calls over one collection.
    joined = predicates_combine(Binary(op, first.body, second.body, type=BOOL))
    predicate = Predicate(joined, type=BOOL)
    return in_place_of(node, Builtin(left.name, [left.arguments[0], predicate]))

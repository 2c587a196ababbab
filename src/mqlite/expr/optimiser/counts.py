"""Counting no further than the result needs (spec 14.5)."""

from __future__ import annotations

from mqlite.expr.nodes import Binary, Builtin, Literal, Node

from .filters import as_filter
from .replacing import in_place_of

__all__ = ["count_becomes_any", "count_gets_threshold", "len_of_filter_becomes_count"]


def len_of_filter_becomes_count(node: Node) -> Node:
    """`len(filter(xs, p))`; what a map would make of the elements is not asked."""
    if not (isinstance(node, Builtin) and node.name == "len" and len(node.arguments) == 1):
        return node
    source = as_filter(node.arguments[0])
    if source is None:
        return node
    return in_place_of(node, Builtin("count", source.arguments))


def _compared_count(node: Node) -> tuple[Binary, Builtin, int] | None:
    """A comparison of a count, on the left, with an integer literal."""
    if not (isinstance(node, Binary) and isinstance(node.left, Builtin)):
        return None
    count, limit = node.left, node.right
    if count.name != "count" or len(count.arguments) != 2:
        return None
    if not isinstance(limit, Literal) or type(limit.value) is not int:
        return None
    return node, count, limit.value


def count_becomes_any(node: Node) -> Node:
    """`count(xs, p) > 0` and `>= 1`."""
    compared = _compared_count(node)
    if compared is not None and (compared[0].op, compared[2]) in ((">", 0), (">=", 1)):
        return in_place_of(node, Builtin("any", compared[1].arguments))
    return node


def count_gets_threshold(node: Node) -> Node:
    """Any other comparison of a count is decided once that many are counted."""
    compared = _compared_count(node)
    if compared is not None:
        comparison, count, limit = compared
        threshold = {">": limit + 1, "<=": limit + 1, ">=": limit, "<": limit}.get(comparison.op)
        if threshold is not None and threshold > 0:
            count.threshold = threshold
    return node

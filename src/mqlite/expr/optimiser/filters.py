"""What follows a `filter` is done in the same pass (spec 14.5)."""

from __future__ import annotations

from mqlite.expr.nodes import Builtin, Member, Node, Pointer, Predicate, children, is_literal

from .replacing import in_place_of

__all__ = [
    "as_filter",
    "filter_end_becomes_find",
    "filter_start_becomes_find",
    "map_joins_filter",
    "uses_index",
]


def as_filter(node: Node) -> Builtin | None:
    """The node, if it is a `filter`."""
    return node if isinstance(node, Builtin) and node.name == "filter" else None


def map_joins_filter(node: Node) -> Node:
    """`map(filter(xs, p), e)` is one loop, unless e wants to know positions."""
    if not (isinstance(node, Builtin) and node.name == "map"):
        return node
    source, body = as_filter(node.arguments[0]), node.arguments[1]
    if source is None or source.then_map is not None or not isinstance(body, Predicate):
        return node
    if uses_index(body):
        return node
    return in_place_of(node, Builtin("filter", source.arguments, then_map=body.body))


def uses_index(node: Node) -> bool:
    """Whether a body asks for positions."""
    pending = [node]
    while pending:
        item = pending.pop()
        if isinstance(item, Pointer) and item.name == "index":
            return True
        pending.extend(children(item))
    return False


def filter_end_becomes_find(node: Node) -> Node:
    """`filter(...)[-1]` and `last(filter(...))`."""
    return _end_becomes_find(node, -1, "last", "findLast")


def filter_start_becomes_find(node: Node) -> Node:
    """`filter(...)[0]` and `first(filter(...))`."""
    return _end_becomes_find(node, 0, "first", "find")


def _end_becomes_find(node: Node, index: int, builtin: str, find: str) -> Node:
    source: Builtin | None = None
    required = False
    if isinstance(node, Member) and not node.optional:
        if is_literal(node.key, int) and node.key.value == index:
            source, required = as_filter(node.base), True
    elif isinstance(node, Builtin) and node.name == builtin and len(node.arguments) == 1:
        source = as_filter(node.arguments[0])
    if source is None:
        return node
    found = Builtin(find, source.arguments, then_map=source.then_map, required=required)
    return in_place_of(node, found)

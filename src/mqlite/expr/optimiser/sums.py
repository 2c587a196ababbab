"""Sums that need no loop (spec 14.6 and 14.7)."""

from __future__ import annotations

from mqlite.expr.integers import wrap
from mqlite.expr.nodes import Array, Binary, Builtin, Literal, Node, Pointer, Predicate
from mqlite.expr.types import INT

from .filters import uses_index
from .replacing import in_place_of

__all__ = [
    "sum_of_items_becomes_addition",
    "sum_of_map_becomes_sum",
    "sum_of_range_is_computed",
]


def sum_of_range_is_computed(node: Node) -> Node:
    """`sum` over a range of literals, also of a simple body, and a `reduce` that is a sum."""
    if not isinstance(node, Builtin) or node.name not in ("sum", "reduce"):
        return node
    bounds = _literal_range(node.arguments[0])
    if bounds is None:
        return node
    result = _summed(node, *bounds) if node.name == "sum" else _reduced(node, *bounds)
    if result is None:
        return node
    return in_place_of(node, Literal(result, type=INT))


def _literal_range(node: Node) -> tuple[int, int] | None:
    if not (isinstance(node, Binary) and node.op == ".."):
        return None
    first, last = _integer(node.left), _integer(node.right)
    return (first, last) if first is not None and last is not None and last >= first else None


def _integer(node: Node) -> int | None:
    if isinstance(node, Literal) and type(node.value) is int:
        return node.value
    return None


def _range_sum(first: int, last: int) -> int:
    """Gauss's sum in 64 bits, cut at each step as the reference's arithmetic is."""
    product = wrap(wrap(last - first + 1) * wrap(first + last))
    return -(-product // 2) if product < 0 else product // 2


def _summed(node: Builtin, first: int, last: int) -> int | None:
    total = _range_sum(first, last)
    if len(node.arguments) == 1:
        return total
    body = node.arguments[1].body if isinstance(node.arguments[1], Predicate) else None
    if _is_element(body):
        return total
    if not isinstance(body, Binary):
        return None
    return _linear(body, total, wrap(last - first + 1))


def _linear(body: Binary, total: int, count: int) -> int | None:
    """The sum of `# * k`, `# + k`, `# - k` and their mirror images."""
    if _is_element(body.left):
        on_left, constant = True, _integer(body.right)
    elif _is_element(body.right):
        on_left, constant = False, _integer(body.left)
    else:
        return None
    if constant is None:
        return None
    match body.op:
        case "*":
            return wrap(total * constant)
        case "+":
            return wrap(total + wrap(count * constant))
        case "-":
            others = wrap(count * constant)
            return wrap(total - others) if on_left else wrap(others - total)
    return None


def _is_element(node: Node | None) -> bool:
    return isinstance(node, Pointer) and not node.name


def _reduced(node: Builtin, first: int, last: int) -> int | None:
    body = node.arguments[1].body if isinstance(node.arguments[1], Predicate) else None
    if not (isinstance(body, Binary) and body.op == "+"):
        return None
    names = [side.name for side in (body.left, body.right) if isinstance(side, Pointer)]
    if sorted(names) != ["", "acc"]:
        return None
    start = _integer(node.arguments[2]) if len(node.arguments) == 3 else 0
    return None if start is None else wrap(start + _range_sum(first, last))


def sum_of_items_becomes_addition(node: Node) -> Node:
    """`sum([a, b, c])` is `a + (b + c)`, and fails or passes as that does."""
    if not (isinstance(node, Builtin) and node.name == "sum" and len(node.arguments) == 1):
        return node
    array = node.arguments[0]
    if not isinstance(array, Array) or len(array.items) < 2:
        return node
    total = array.items[-1]
    for item in reversed(array.items[:-1]):
        total = Binary("+", item, total, pos=node.pos, type=node.type)
    return in_place_of(node, total)


def sum_of_map_becomes_sum(node: Node) -> Node:
    """`sum(map(xs, e))` is `sum(xs, e)`."""
    if not (isinstance(node, Builtin) and node.name == "sum" and len(node.arguments) == 1):
        return node
    inner = node.arguments[0]
    if not (isinstance(inner, Builtin) and inner.name == "map") or uses_index(inner):
        return node
    return in_place_of(node, Builtin("sum", inner.arguments))

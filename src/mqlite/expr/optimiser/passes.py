"""The passes, in the order in which the reference makes them."""

from __future__ import annotations

from collections.abc import Callable

from mqlite.expr import trampoline
from mqlite.expr.nodes import Node
from mqlite.expr.trampoline import Steps

from .counts import count_becomes_any, count_gets_threshold, len_of_filter_becomes_count
from .filters import filter_end_becomes_find, filter_start_becomes_find, map_joins_filter
from .folding import Folding
from .lists import in_list_becomes_set, in_range_becomes_comparison
from .predicates import predicates_combine
from .sums import sum_of_items_becomes_addition, sum_of_map_becomes_sum, sum_of_range_is_computed

__all__ = ["optimise"]

Rewrite = Callable[[Node], Node]

_AFTER_FOLDING: tuple[Rewrite, ...] = (
    in_range_becomes_comparison,
    map_joins_filter,
    len_of_filter_becomes_count,
    filter_end_becomes_find,
    filter_start_becomes_find,
    predicates_combine,
    sum_of_range_is_computed,
    sum_of_items_becomes_addition,
    sum_of_map_becomes_sum,
    count_becomes_any,
    count_gets_threshold,
)


def optimise(tree: Node, source: str) -> Node:
    """The optimised tree; the given one is used up.

    Raises ExprTypeError where folding meets a division of integer literals by zero.
    """
    tree = _rewrite(tree, in_list_becomes_set)
    while True:
        folding = Folding(source)
        tree = _rewrite(tree, folding.fold)
        if not folding.changed:
            break
    for rewrite in _AFTER_FOLDING:
        tree = _rewrite(tree, rewrite)
    return tree


def _rewrite(tree: Node, rewrite: Rewrite) -> Node:
    return trampoline.run(_bottom_up(tree, rewrite))


def _bottom_up(node: Node, rewrite: Rewrite) -> Steps[Node]:
    for name in type(node).children:
        held = getattr(node, name)
        if isinstance(held, list):
            for index, child in enumerate(held):
                held[index] = yield _bottom_up(child, rewrite)
        elif held is not None:
            setattr(node, name, (yield _bottom_up(held, rewrite)))
    return rewrite(node)

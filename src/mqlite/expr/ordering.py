"""Sorting values (spec 8.3, 8.4, 10)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

from .budget import Budget
from .comparison import ORDERINGS
from .errors import Fault
from .text import is_broken
from .textform import text_of
from .values import Value, go_name

__all__ = ["descending", "sort_by_keys", "sort_values"]


def descending(order: Value, problem: str) -> bool:
    """Whether an order argument says "desc"; raises Fault if it is neither that nor "asc"."""
    if type(order) is not str:
        raise Fault(f"interface conversion: interface {{}} is {go_name(order)}, not string")
    if order not in ("asc", "desc"):
        raise Fault(problem.format(text_of(Budget(), order)))
    return bool(order == "desc")


def sort_values(budget: Budget, items: list[Value], downwards: bool) -> list[Value]:
    """Sort a list in place, stably, and return it; raises Fault if two items have no order."""
    budget.visit(len(items))
    items.sort(key=_sort_key(budget, items), reverse=downwards)
    return items


def sort_by_keys(
    budget: Budget, items: list[Value], keys: list[Value], downwards: bool
) -> list[Value]:
    """The items in the order of their keys."""
    budget.visit(len(items))
    key = _sort_key(budget, keys)
    places = range(len(items))
    order = sorted(places, key=lambda place: key(keys[place]), reverse=downwards)
    return [items[place] for place in order]


def _sort_key(budget: Budget, values: list[Value]) -> Callable[[Value], Any]:
    """A key by which Python sorts values the way the language orders them."""
    kinds = set(map(type, values))
    if kinds == {int} or (kinds == {str} and not any(map(is_broken, values))):
        return lambda value: value

    less = ORDERINGS["<"]

    def compare(a: Value, b: Value) -> int:
        budget.visit()
        if less(budget, a, b):
            return -1
        return 1 if less(budget, b, a) else 0

    return cmp_to_key(compare)

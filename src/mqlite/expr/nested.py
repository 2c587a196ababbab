"""Writing values that hold values, to any depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from .budget import Budget
from .values import Value

__all__ = ["Opened", "write"]


class Opened(NamedTuple):
    """A value that holds others: what to write before each of them, and after the last."""

    members: Iterator[tuple[str, Value]]
    closing: str


def write(
    budget: Budget,
    value: Value,
    opened: Callable[[Value, int], Opened | None],
    plain: Callable[[Value], str],
) -> str:
    """The text of a value: `opened` takes apart, at a depth, what holds others; `plain` the rest."""
    parts: list[str] = []
    unfinished: list[Opened] = []
    while True:
        budget.visit()
        container = opened(value, len(unfinished))
        if container is None:
            text = plain(value)
            budget.build(len(text))
            parts.append(text)
        else:
            unfinished.append(container)
        while unfinished:
            member = next(unfinished[-1].members, None)
            if member is not None:
                lead, value = member
                budget.build(len(lead))
                parts.append(lead)
                break
            parts.append(unfinished.pop().closing)
        else:
            return "".join(parts)

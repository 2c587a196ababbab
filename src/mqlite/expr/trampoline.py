"""Recursion without the stack: generators that yield the calls they would have made.

A syntax tree can be as deep as its source is long, deeper than Python's stack. So whatever walks
trees is written as a generator that *yields* a sub-walk and is sent its result, and `run` keeps
the pending ones on a list.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

__all__ = ["Steps", "done", "run"]

T = TypeVar("T")

Steps: TypeAlias = Generator[Generator[Any, Any, Any], Any, T]


def done(value: T) -> Steps[T]:
    """A walk that has nowhere to go."""
    return value
    yield  # what makes this a generator


def run(task: Steps[T]) -> T:
    """Drive a generator, and those it yields, to the end; exceptions abandon the whole walk."""
    pending: list[Generator[Any, Any, Any]] = [task]
    result: Any = None
    while pending:
        try:
            call = pending[-1].send(result)
        except StopIteration as done:
            pending.pop()
            result = done.value
        else:
            pending.append(call)
            result = None
    value: T = result
    return value

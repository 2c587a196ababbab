"""How much an evaluation may cost (spec 15.2, and a bound of our own beyond it)."""

from __future__ import annotations

from typing import Any

from .errors import Fault

__all__ = ["MEMORY_BUDGET", "WORK_BUDGET", "Budget"]

MEMORY_BUDGET = 1_000_000
"""Units that one evaluation may allocate; reaching it is an error."""

WORK_BUDGET = 2_000_000
"""Predicate calls and element visits that the evaluations sharing a `Budget` may make together."""

# Long strings cost work too: this many bytes read, or built, count as one visit. The first so that
# scanning a big body once per element has an end, the second so that strings cannot grow for ever.
_BYTES_READ_PER_VISIT = 1024
_BYTES_BUILT_PER_VISIT = 16


class Budget:
    """What is left to the evaluations that share it, and the state of the one that runs.

    One budget serves one publishing call: evaluations run one after the other, each with a memory
    budget of its own, all of them with the same work budget. It must not be shared by threads.
    """

    __slots__ = ("locals", "memory", "work")

    def __init__(self, work: int = WORK_BUDGET) -> None:
        self.work = work
        self.memory = 0
        self.locals: list[Any] = []

    def grow(self, units: int) -> None:
        """Charge memory; raises Fault when the evaluation has used all of it."""
        self.memory += units
        if self.memory >= MEMORY_BUDGET:
            raise Fault("memory budget exceeded")

    def visit(self, times: int = 1) -> None:
        """Charge work; raises Fault when the evaluations have used all of it."""
        self.work -= times
        if self.work < 0:
            raise Fault("work budget exceeded")

    def read(self, text: str | bytes) -> None:
        """Charge for going through a text."""
        if len(text) > _BYTES_READ_PER_VISIT:
            self.visit(len(text) // _BYTES_READ_PER_VISIT)

    def build(self, size: int) -> None:
        """Charge for a new string of some size, before it is made."""
        if size > _BYTES_BUILT_PER_VISIT:
            self.visit(size // _BYTES_BUILT_PER_VISIT)

"""The nearest known name to a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["nearest"]


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant, or None if none is near enough to be helpful."""
    folded = _fold(name)
    best: str | None = None
    least = _tolerance(folded) + 1
    for candidate in known:
        distance = _distance(folded, _fold(candidate), least)
        if distance < least:
            best, least = candidate, distance
    return best


def _tolerance(name: str) -> int:
    """How many slips may lie between; anything is near to a name of a few letters."""
    return 0 if len(name) < 5 else 1 if len(name) < 8 else 2


def _fold(name: str) -> str:
    return name.casefold().replace("_", "")


def _distance(a: str, b: str, limit: int) -> int:
    """Insertions, deletions, substitutions and swaps of neighbours, or `limit` if not fewer."""
    if abs(len(a) - len(b)) >= limit:
        return limit
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, char in enumerate(a, 1):
        earlier, before, row = before, row, [i]
        for j, other in enumerate(b, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (char != other))
            if i > 1 and j > 1 and char == b[j - 2] and a[i - 2] == other:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return min(row[-1], limit)

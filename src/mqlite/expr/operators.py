"""Spelling, precedence and associativity of the operators (spec 3.1 and 3.2)."""

from __future__ import annotations

__all__ = ["BINARY", "COMPARISONS", "NEGATABLE", "RIGHT_ASSOCIATIVE", "UNARY"]

BINARY = {
    "|": 0,
    "or": 10, "||": 10,
    "and": 15, "&&": 15,
    "==": 20, "!=": 20, "<": 20, "<=": 20, ">": 20, ">=": 20, "in": 20,
    "matches": 20, "contains": 20, "startsWith": 20, "endsWith": 20,
    "..": 25,
    "+": 30, "-": 30,
    "*": 60, "/": 60, "%": 60,
    "**": 100, "^": 100,
    "??": 500,
}  # fmt: skip

UNARY = {"not": 50, "!": 50, "-": 90, "+": 90}

RIGHT_ASSOCIATIVE = frozenset(["**", "^"])
COMPARISONS = frozenset(["<", "<=", ">", ">="])
NEGATABLE = frozenset(["in", "matches", "contains", "startsWith", "endsWith"])

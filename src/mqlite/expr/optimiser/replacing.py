"""Putting a node in the place of another."""

from __future__ import annotations

from typing import TypeVar

from mqlite.expr.nodes import Node

__all__ = ["in_place_of"]

N = TypeVar("N", bound=Node)


def in_place_of(old: Node, new: N) -> N:
    """Give a node the place and the type of the one it replaces, also where errors are reported."""
    new.pos = old.pos
    new.type = old.type
    return new

"""The syntax tree.

Every node knows its offset in the source (`pos`) and, after checking, its static type. `children`
names the attributes that hold sub-trees, in order of evaluation, for the walks that treat all
nodes alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeGuard

from .types import UNKNOWN, Type

__all__ = [
    "Array",
    "Binary",
    "Builtin",
    "Call",
    "Chain",
    "Conditional",
    "Constant",
    "Let",
    "Literal",
    "Map",
    "Member",
    "Name",
    "Node",
    "Pair",
    "Pointer",
    "Predicate",
    "Recall",
    "Remember",
    "Sequence",
    "Slice",
    "Unary",
    "children",
    "is_literal",
]


@dataclass(slots=True, eq=False)
class Node:
    """Any part of an expression."""

    children: ClassVar[tuple[str, ...]] = ()

    pos: int = field(default=0, kw_only=True, repr=False)
    type: Type = field(default=UNKNOWN, kw_only=True, repr=False)


@dataclass(slots=True, eq=False)
class Literal(Node):
    """nil, a boolean, integer, float, string or bytes, as written or folded."""

    value: bool | int | float | str | bytes | None


@dataclass(slots=True, eq=False)
class Constant(Node):
    """A value that the optimiser made: a folded array, or the set that `in` looks into."""

    value: Any


@dataclass(slots=True, eq=False)
class Name(Node):
    """A variable, a `let` name, or a function or builtin named without a call."""

    name: str


@dataclass(slots=True, eq=False)
class Pointer(Node):
    """`#`, `#index` or `#acc`; the name is empty for the element itself."""

    name: str


@dataclass(slots=True, eq=False)
class Unary(Node):
    """A prefix operator; also the `not` of `not in` and its like."""

    children: ClassVar[tuple[str, ...]] = ("operand",)

    op: str
    operand: Node


@dataclass(slots=True, eq=False)
class Binary(Node):
    """An infix operator."""

    children: ClassVar[tuple[str, ...]] = ("left", "right")

    op: str
    left: Node
    right: Node


@dataclass(slots=True, eq=False)
class Remember(Node):
    """An operand that is evaluated once and used twice: the middle of `a < b < c`."""

    children: ClassVar[tuple[str, ...]] = ("node",)

    node: Node


@dataclass(slots=True, eq=False)
class Recall(Node):
    """The second use of a remembered operand."""

    source: Remember = field(repr=False)


@dataclass(slots=True, eq=False)
class Conditional(Node):
    """`c ? a : b`, `if c { a } else { b }`, or, with no `then`, `c ?: b`."""

    children: ClassVar[tuple[str, ...]] = ("condition", "then", "otherwise")

    condition: Node
    then: Node | None
    otherwise: Node


@dataclass(slots=True, eq=False)
class Member(Node):
    """`base.key`, `base[key]`, or, with `method`, the callee of `base.key()`."""

    children: ClassVar[tuple[str, ...]] = ("base", "key")

    base: Node
    key: Node
    optional: bool = False
    method: bool = False


@dataclass(slots=True, eq=False)
class Chain(Node):
    """The extent of an optional chain: a `?.` inside that meets nil ends it with nil."""

    children: ClassVar[tuple[str, ...]] = ("node",)

    node: Node


@dataclass(slots=True, eq=False)
class Slice(Node):
    """`base[start:stop]`."""

    children: ClassVar[tuple[str, ...]] = ("base", "start", "stop")

    base: Node
    start: Node | None
    stop: Node | None


@dataclass(slots=True, eq=False)
class Call(Node):
    """A call of anything but a builtin."""

    children: ClassVar[tuple[str, ...]] = ("callee", "arguments")

    callee: Node
    arguments: list[Node]


@dataclass(slots=True, eq=False)
class Builtin(Node):
    """A call of a builtin.

    The optimiser's marks: `then_map` is what `filter` yields instead of the element, `threshold`
    the number at which `count` may stop, `required` makes a `find` without a hit an error.
    """

    children: ClassVar[tuple[str, ...]] = ("arguments", "then_map")

    name: str
    arguments: list[Node]
    then_map: Node | None = None
    threshold: int | None = None
    required: bool = False


@dataclass(slots=True, eq=False)
class Predicate(Node):
    """The argument of a builtin that is evaluated per element."""

    children: ClassVar[tuple[str, ...]] = ("body",)

    body: Node


@dataclass(slots=True, eq=False)
class Array(Node):
    """`[a, b]`."""

    children: ClassVar[tuple[str, ...]] = ("items",)

    items: list[Node]


@dataclass(slots=True, eq=False)
class Pair(Node):
    """`k: v` inside a map."""

    children: ClassVar[tuple[str, ...]] = ("key", "value")

    key: Node
    value: Node


@dataclass(slots=True, eq=False)
class Map(Node):
    """`{k: v}`."""

    children: ClassVar[tuple[str, ...]] = ("pairs",)

    pairs: list[Pair]


@dataclass(slots=True, eq=False)
class Let(Node):
    """`let name = value; body`."""

    children: ClassVar[tuple[str, ...]] = ("value", "body")

    name: str
    value: Node
    body: Node


@dataclass(slots=True, eq=False)
class Sequence(Node):
    """`a; b; c`."""

    children: ClassVar[tuple[str, ...]] = ("items",)

    items: list[Node]


def children(node: Node) -> Iterator[Node]:
    """The direct sub-trees of a node, in order of evaluation."""
    for name in type(node).children:
        held = getattr(node, name)
        if isinstance(held, list):
            yield from held
        elif held is not None:
            yield held


def is_literal(node: Node, *kinds: type) -> TypeGuard[Literal]:
    """Whether a node is a literal whose value is of exactly one of these Python types."""
    return isinstance(node, Literal) and type(node.value) in kinds

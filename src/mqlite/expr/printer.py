"""A syntax tree as text that parses to the same tree.

Every operation is put in brackets, so the text does not depend on precedence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import trampoline
from .nodes import (
    Array,
    Binary,
    Builtin,
    Call,
    Chain,
    Conditional,
    Constant,
    Let,
    Literal,
    Map,
    Member,
    Name,
    Node,
    Pair,
    Pointer,
    Predicate,
    Recall,
    Remember,
    Sequence,
    Slice,
    Unary,
)
from .operators import NEGATABLE
from .text import is_identifier_char, replace_broken
from .trampoline import Steps, done

__all__ = ["print_tree"]


def print_tree(tree: Node) -> str:
    """The text of a tree as parsed. Optimised trees print for a human or a comparison only."""
    return trampoline.run(_print(tree))


def _print(node: Node) -> Steps[str]:
    return _PRINTERS[type(node)](node)


def _all(nodes: list[Any], separator: str = ", ") -> Steps[str]:
    texts: list[str] = []
    for node in nodes:
        texts.append((yield _print(node)))
    return separator.join(texts)


def _literal(node: Literal) -> Steps[str]:
    return done(literal_text(node.value))


def literal_text(value: bool | int | float | str | bytes | None) -> str:
    """A literal as it would be written."""
    match value:
        case None:
            return "nil"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            text = repr(value)
            return text if "e" in text or "." in text else f"({text})"
        case bytes():
            return 'b"' + "".join(f"\\x{byte:02x}" for byte in value) + '"'
        case str():
            return f'"{"".join(map(_escape, replace_broken(value)))}"'


def _escape(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    return char if char.isprintable() else f"\\u{{{ord(char):x}}}"


def _constant(node: Constant) -> Steps[str]:
    return done(repr(node.value))


def _name(node: Name) -> Steps[str]:
    return done(node.name)


def _pointer(node: Pointer) -> Steps[str]:
    # In brackets, lest a name that follows be taken for the pointer's own.
    return done(f"#{node.name}" if node.name else "(#)")


def _unary(node: Unary) -> Steps[str]:
    inner = node.operand
    if node.op == "not" and isinstance(inner, Binary) and inner.op in NEGATABLE:
        # `not (a in b)` and `a not in b` are the same tree.
        text: str = yield _print(inner)
        return f"(not {text})"
    operand: str = yield _print(inner)
    return f"({node.op} {operand})"


def _binary(node: Binary) -> Steps[str]:
    if isinstance(node.left, Recall):
        # The rest of a chain of comparisons; what comes before is printed by the `&&` around.
        tail: str = yield _print(node.right)
        return f" {node.op} {tail}"
    left: str = yield _print(node.left)
    right: str = yield _print(node.right)
    if isinstance(node.right, Binary) and isinstance(node.right.left, Recall):
        return f"{left[:-1]}{right})"
    return f"({left} {node.op} {right})"


def _remember(node: Remember) -> Steps[str]:
    text: str = yield _print(node.node)
    return text


def _recall(node: Recall) -> Steps[str]:
    return done("_")


def _conditional(node: Conditional) -> Steps[str]:
    condition: str = yield _print(node.condition)
    otherwise: str = yield _print(node.otherwise)
    if node.then is None:
        return f"({condition} ?: {otherwise})"
    then: str = yield _print(node.then)
    return f"({condition} ? {then} : {otherwise})"


def _member(node: Member) -> Steps[str]:
    base: str = yield _print(node.base)
    dot = "?." if node.optional else "."
    if isinstance(node.key, Literal) and isinstance(node.key.value, str):
        name = node.key.value
        if _is_name(name):
            return f"{base}{dot}{name}"
    key: str = yield _print(node.key)
    return f"{base}?.[{key}]" if node.optional else f"{base}[{key}]"


def _is_name(text: str) -> bool:
    return text != "" and all(map(is_identifier_char, text)) and text[0] not in "0123456789"


def _chain(node: Chain) -> Steps[str]:
    text: str = yield _print(node.node)
    return text


def _slice(node: Slice) -> Steps[str]:
    base: str = yield _print(node.base)
    bounds = ["", ""]
    for index, bound in enumerate((node.start, node.stop)):
        if bound is not None:
            bounds[index] = yield _print(bound)
    return f"{base}[{':'.join(bounds)}]"


def _call(node: Call) -> Steps[str]:
    callee: str = yield _print(node.callee)
    arguments: str = yield _all(node.arguments)
    return f"{callee}({arguments})"


def _builtin(node: Builtin) -> Steps[str]:
    arguments: str = yield _all(node.arguments)
    if node.then_map is None:
        return f"{node.name}({arguments})"
    mapped: str = yield _print(node.then_map)
    return f"map({node.name}({arguments}), {{{mapped}}})"


def _predicate(node: Predicate) -> Steps[str]:
    body: str = yield _print(node.body)
    return f"{{{body}}}"


def _array(node: Array) -> Steps[str]:
    items: str = yield _all(node.items)
    return f"[{items}]"


def _map(node: Map) -> Steps[str]:
    pairs: str = yield _all(node.pairs)
    return f"{{{pairs}}}"


def _pair(node: Pair) -> Steps[str]:
    key: str = yield _print(node.key)
    value: str = yield _print(node.value)
    literal = isinstance(node.key, Literal) and isinstance(node.key.value, str)
    return f"{key}: {value}" if literal else f"({key}): {value}"


def _let(node: Let) -> Steps[str]:
    value: str = yield _print(node.value)
    body: str = yield _print(node.body)
    return f"(let {node.name} = {value}; {body})"


def _sequence(node: Sequence) -> Steps[str]:
    items: str = yield _all(node.items, "; ")
    return f"({items})"


_PRINTERS: dict[type[Node], Callable[[Any], Steps[str]]] = {
    Array: _array,
    Binary: _binary,
    Builtin: _builtin,
    Call: _call,
    Chain: _chain,
    Conditional: _conditional,
    Constant: _constant,
    Let: _let,
    Literal: _literal,
    Map: _map,
    Member: _member,
    Name: _name,
    Pair: _pair,
    Pointer: _pointer,
    Predicate: _predicate,
    Recall: _recall,
    Remember: _remember,
    Sequence: _sequence,
    Slice: _slice,
    Unary: _unary,
}

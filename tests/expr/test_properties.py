"""What holds for every expression."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, example, given, settings

from mqlite.expr import Budget, ExprError, ExprRuntimeError, ExprSyntaxError, compile
from mqlite.expr.builtins import BUILTINS
from mqlite.expr.errors import Fault
from mqlite.expr.message import MESSAGE_ENV, Sample, compile_filter
from mqlite.expr.nodes import Node, children
from mqlite.expr.parser import parse
from mqlite.expr.printer import print_tree
from mqlite.expr.values import AnyMap, go_name

from . import treewalk
from .programs import SAMPLE_VALUES, soup, well_typed

VALUES = Sample(**SAMPLE_VALUES).values()
QUIET = settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)


def tree_of(source: str) -> Node:
    names = [name for name in BUILTINS if name != "duration"]
    return parse(source, builtins=names, overridden=MESSAGE_ENV.functions, max_nodes=1000)


def shape(node: Node) -> Any:
    """A tree without positions and types."""
    own = [
        (name, getattr(node, name))
        for name in ("value", "name", "op", "optional", "method")
        if hasattr(node, name)
    ]
    return (
        type(node).__name__,
        [
            (name, value if isinstance(value, str) else repr(value))
            for name, value in own
            if not isinstance(value, Node)
        ],
        [shape(child) for child in children(node)],
    )


def outcome(value: Any) -> Any:
    """A value with its kinds, so that 1, 1.0 and true differ, and NaN does not from itself."""
    if isinstance(value, float):
        return ("float64", struct.pack(">d", value) if value == value else b"nan")
    if isinstance(value, (list, tuple, range)):
        return (go_name(value), [outcome(item) for item in value])
    if isinstance(value, dict):
        return (go_name(value), {key: outcome(held) for key, held in value.items()})
    if isinstance(value, AnyMap):
        return (go_name(value), [(outcome(k), outcome(v)) for k, v in value.entries.values()])
    return (go_name(value), str(value))


@QUIET
@given(well_typed())
@example("0 < body_size < 3")
@example("subject not in ['a']")
@example("body_json?.a.b?.[0].c")
@example("-1 ** -(2)")
@example("let x = 1; x ?: 2")
@example("map(1..3, (#).y ?? #index)")
def test_printed_trees_parse_back(source: str) -> None:
    try:
        tree = tree_of(source)
    except ExprSyntaxError:
        return
    printed = print_tree(tree)
    again = tree_of(printed)
    assert shape(again) == shape(tree)
    assert print_tree(again) == printed


@QUIET
@given(well_typed())
def test_compiled_and_walked_agree(source: str) -> None:
    try:
        program = compile(source, MESSAGE_ENV)
    except ExprError:
        return
    try:
        compiled = outcome(program.run(VALUES))
    except ExprRuntimeError as error:
        compiled = error.message
    try:
        walked = outcome(treewalk.evaluate(source, MESSAGE_ENV, VALUES))
    except Fault as fault:
        walked = fault.message
    assert compiled == walked


@QUIET
@given(soup())
def test_random_text_raises_only_our_errors(source: str) -> None:
    with suppress(ExprError):
        compile_filter(source).matches(Sample(**SAMPLE_VALUES), Budget())
    with suppress(ExprError):
        compile(source, MESSAGE_ENV).run(VALUES, Budget())


@QUIET
@given(well_typed())
def test_a_deep_evaluation_is_the_same_evaluation(source: str) -> None:
    """Closures and steps are two ways to evaluate one form."""
    try:
        flat = compile(source, MESSAGE_ENV)
        deep = compile("[" * 70 + source + "]" * 70, MESSAGE_ENV)
    except ExprError:
        return
    try:
        expected = outcome(flat.run(VALUES))
    except ExprRuntimeError as error:
        expected = error.message
    try:
        value = deep.run(VALUES)
        for _ in range(70):
            (value,) = value
        actual = outcome(value)
    except ExprRuntimeError as error:
        actual = error.message
    assert actual == expected

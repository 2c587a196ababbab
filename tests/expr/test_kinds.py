"""Whatever the kinds of values that meet at run time: a result, or an error of the language."""

from __future__ import annotations

import itertools
import math
from contextlib import suppress

import pytest

from mqlite.expr import Budget, Env, ExprRuntimeError, ExprTypeError, Program, compile
from mqlite.expr.builtins import BUILTINS, LOOPS
from mqlite.expr.gotime import UTC, Duration, Month, Time, Weekday
from mqlite.expr.message import MESSAGE_ENV
from mqlite.expr.operators import BINARY
from mqlite.expr.types import ANY
from mqlite.expr.values import (
    NIL_ANYS,
    AnyMap,
    Environment,
    Int64,
    Pair,
    Pairs,
    StringMap,
    Uint8,
)

GROUPS = AnyMap("map[interface {}][]interface {}", NIL_ANYS)
GROUPS.put(1, [1])

KINDS = (
    None, True, 3, -(2**63), Int64(4), Uint8(5), 2.5, math.nan, math.inf, "", "ab.c", "é\udcff", b"ab",
    [], [1, "a", None], [[1], {}], ("a", "b"), range(1, 4), NIL_ANYS, Pair(("a", 1)),
    Pairs([Pair(("a", 1))]), {}, {"a": 1}, StringMap(a="b"), GROUPS, Time(0), Duration(1), Month(1),
    Weekday(0), UTC, Environment("env", {}, {"a": 1}),
)  # fmt: skip

ENV = Env(dict.fromkeys("abc", ANY), MESSAGE_ENV.functions, type_name="env")
MEMBERS = (
    "a.x",
    "a[b]",
    "a?.x",
    "a[b:c]",
    "a[b:]",
    "a[:b]",
    "a.String()",
    "a.Add(b)",
    "a.Format(b)",
)
BODIES = ("#", "# == b", "b", "#.x", "[#][0]")


def run_on_all_kinds(program: Program, variables: int) -> None:
    kinds = KINDS if variables < 3 else KINDS[::3]
    for values in itertools.product(kinds, repeat=variables):
        bound = dict(zip("abc", (*values, None, None), strict=False))
        with suppress(ExprRuntimeError):
            program.run(bound, Budget(10_000))


@pytest.mark.parametrize("op", [op for op in BINARY if op != "|"])
def test_binary_operators(op: str) -> None:
    run_on_all_kinds(compile(f"a {op} b", ENV), 2)
    run_on_all_kinds(compile(f"string([a]) != toJSON(a {op} b)", ENV), 2)


@pytest.mark.parametrize("op", ["-", "+", "not ", "!"])
def test_unary_operators(op: str) -> None:
    run_on_all_kinds(compile(f"{op}a", ENV), 1)


@pytest.mark.parametrize("source", [*MEMBERS, "a ? b : c", "a ?: b", "{(a): b}", "a < b <= c"])
def test_access_and_conditions(source: str) -> None:
    run_on_all_kinds(compile(source, ENV), 3)


@pytest.mark.parametrize("name", [name for name in BUILTINS if name not in LOOPS])
def test_builtins(name: str) -> None:
    for count in range(4):
        with suppress(ExprTypeError):
            run_on_all_kinds(compile(f"{name}({', '.join('abc'[:count])})", ENV), count)


@pytest.mark.parametrize("name", list(LOOPS))
@pytest.mark.parametrize("body", BODIES)
def test_loops(name: str, body: str) -> None:
    run_on_all_kinds(compile(f"{name}(a, {body})", ENV), 2)
    if name in ("reduce", "sortBy"):
        run_on_all_kinds(compile(f"{name}(a, {body}, c)", ENV), 3)


@pytest.mark.parametrize("name", list(MESSAGE_ENV.functions))
def test_functions_of_the_message_environment(name: str) -> None:
    run_on_all_kinds(compile(f"{name}(a)", ENV), 1)

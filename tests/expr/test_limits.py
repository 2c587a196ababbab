"""Nothing that is written or sent can cost more than it may."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from mqlite.expr import Budget, ExprError, ExprRuntimeError, ExprSyntaxError, compile
from mqlite.expr.budget import MEMORY_BUDGET, WORK_BUDGET
from mqlite.expr.message import MAX_SOURCE_BYTES, MESSAGE_ENV, Sample, compile_filter

DOUBLING = "".join(f"let v{i + 1} = v{i} + v{i}; " for i in range(60))
TREE = "".join(f"let v{i + 1} = [v{i}, v{i}]; " for i in range(60))
DEEP = "let d = reduce(1..50000, [#acc], 1); "


LONG = {"s": "é" * 100_000, "d": "1s" * 100_000, "j": "[1,2]" + " " * 100_000}


def run(source: str, budget: Budget | None = None, **limits: int) -> Any:
    values = {**Sample(subject="a", body=b"x" * 100_000).values(), "body_json": LONG}
    return compile(source, MESSAGE_ENV, **limits).run(values, budget)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("(" * 50_000 + "1" + ")" * 50_000, 1),
        ("-" * 998 + "body_size", 100_000),
        ("!" * 990 + '(subject == "a")', True),
        (" + ".join(["body_size"] * 500), 50_000_000),
        (" || (".join(['subject == ""'] * 240) + ")" * 239, False),
        ('subject == "" ? 1 : ' * 190 + "2", 2),
        ("(" * 300 + 'subject == "a"' + " ?: false)" * 300, True),
        ("all(subject_parts, " * 330 + "true" + ")" * 330, True),
        ("body_json" + "?.a" * 240, None),
    ],
    ids=[
        "parentheses",
        "prefixes",
        "not",
        "sum",
        "or",
        "conditional",
        "elvis",
        "predicates",
        "chain",
    ],
)
def test_depth_is_no_obstacle(source: str, result: Any) -> None:
    assert run(source) == result


def test_depth_is_no_obstacle_for_containers() -> None:
    value = run("[" * 990 + "subject" + "]" * 990)
    for _ in range(990):
        (value,) = value
    assert value == "a"


def test_depth_is_no_obstacle_on_a_small_stack() -> None:
    """A thread starts with the whole allowance of frames; recursion would use that up as well."""
    results: list[Any] = []
    old = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=lambda: results.append(run("-" * 998 + "body_size")))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(old)
    assert results == [100_000]


def test_an_operand_used_twice_is_evaluated_once() -> None:
    source = "body_size"
    for _ in range(60):
        source = f"(0 < {source} < 9 ? 1 : 2)"
    assert run(source) == 1


@pytest.mark.parametrize(
    "source",
    [
        'let v0 = repeat("x", 100000); ' + DOUBLING + "len(v60)",
        "let v0 = [1]; " + TREE + "string(v60)",
        "let v0 = [1]; " + TREE + "toJSON(v60)",
        "let v0 = [1]; " + TREE + "flatten(v60)",
        "let v0 = [1]; " + TREE + "max(v60)",
        "let v0 = [1]; " + TREE + "median(v60)",
        "let v0 = [1]; " + TREE + "v60 == [v59, v59]",
        DEEP + "toJSON(d)",
        'replace(repeat("a", 900000), "a", repeat("b", 90000))',
        "join(map(1..900, body_text), body_text)",
        "map(1..900000, split(body_text, ''))",
        "let l = 1..200000; all(1..200000, # in l)",
        "all(1..900000, upper(body_text) != '')",
        "all(1..900000, any(body_json.s, true))",
        "all(1..900000, duration(body_json.d) != hours(0))",
        "all(1..900000, trimPrefix(body_text, 'x') != '')",
        "all(1..900000, fromJSON(body_json.j) != nil)",
    ],
)
def test_work_is_bounded(source: str) -> None:
    # A tenth of the real budget will do to see that each of them comes to an end.
    with pytest.raises(ExprRuntimeError, match="work budget exceeded"):
        run(source, Budget(WORK_BUDGET // 10))


def test_the_last_element_is_found_without_a_copy() -> None:
    assert run("let l = map(1..300000, #); all(1..300000, findLast(l, # > 1) != 0)") is True


def test_deep_values_are_handled() -> None:
    assert run(DEEP + "len(string(d))") == 100_001
    assert run(DEEP + "d == [d]") is False
    for name in ("flatten", "max", "mean", "median"):
        with pytest.raises(ExprRuntimeError, match="recursion depth exceeded"):
            run(f"{DEEP}{name}(d)")


def test_json_may_nest_as_deep_as_the_reference_allows() -> None:
    assert run('len(fromJSON(repeat("[", 10000) + repeat("]", 10000)))') == 1
    with pytest.raises(ExprRuntimeError, match="exceeded max depth"):
        run('fromJSON(repeat("[", 10001) + repeat("]", 10001))')


def test_keys_do_not_nest_without_end() -> None:
    with pytest.raises(ExprRuntimeError, match="unhashable"):
        run("reduce(1..2000, (fromPairs([[#acc, 1]]) | toPairs())[0], 1)")


def test_the_memory_budget_is_each_evaluation_s_own() -> None:
    budget = Budget()
    program = compile(f"len(1..{MEMORY_BUDGET - 1})", MESSAGE_ENV)
    for _ in range(3):
        assert program.run(Sample().values(), budget) == MEMORY_BUDGET - 1
    with pytest.raises(ExprRuntimeError, match="memory budget exceeded"):
        run(f"len(1..{MEMORY_BUDGET})")


def test_the_work_budget_is_shared() -> None:
    budget = Budget(work=250)
    values = Sample().values()
    program = compile("all(1..100, # > 0)", MESSAGE_ENV)
    assert program.run(values, budget) is True
    assert program.run(values, budget) is True
    with pytest.raises(ExprRuntimeError, match="work budget exceeded"):
        program.run(values, budget)
    assert compile("1 == 1", MESSAGE_ENV).run(values, budget) is True


def test_filters_are_limited_in_length() -> None:
    def of_size(size: int) -> str:
        return 'subject == "' + "a" * (size - 13) + '"'

    assert compile_filter(of_size(MAX_SOURCE_BYTES)).matches(Sample()) is False
    with pytest.raises(ExprSyntaxError, match=r"^expression too long \(4097 > 4096 bytes\)$"):
        compile_filter(of_size(MAX_SOURCE_BYTES + 1))
    with pytest.raises(ExprSyntaxError, match="too long"):
        compile_filter(of_size(3000).replace("aa", "éé"))


def test_filters_are_limited_in_nodes() -> None:
    assert run("!" * 999 + "true") is False
    with pytest.raises(ExprSyntaxError, match="exceeds maximum allowed nodes"):
        run("!" * 1000 + "true")
    assert run("!" * 1000 + "true", max_nodes=1001) is True


@pytest.mark.parametrize(
    "source",
    [
        "subject.__class__",
        "subject.upper()",
        "subject_parts.__len__()",
        "enqueued_at.ns",
        "enqueued_at.zone",
        "enqueued_at.__init__()",
        "body_json.__class__.x",
        "$env.values",
        "$env?.__class__.x",
        "body_json.items()",
        "enqueued_at.Hour.__globals__",
        "hours.call",
        "__import__('os')",
        "{a: 1}.a.real",
        "[1].append(2)",
    ],
)
def test_there_is_no_way_to_python(source: str) -> None:
    with pytest.raises(ExprError):
        run(source)

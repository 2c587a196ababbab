"""Filters over messages, beyond what the vectors say."""

from __future__ import annotations

from typing import Any

import pytest

from mqlite.expr import Budget, ExprRuntimeError
from mqlite.expr.message import Filter, Sample, compile_filter

ORDER = Sample(
    subject="orders.eu.new",
    properties={"tier": "gold", "a": "1"},
    content_type="application/json",
    body=b'{"amount": 150, "tags": ["x"]}',
    enqueued_at_ms=1_700_000_000_000,
)


@pytest.mark.parametrize("source", ["", "  ", "\n\t\u00a0\u2003"])
def test_a_blank_filter_matches_everything(source: str) -> None:
    blank = compile_filter(source)
    assert blank.program is None
    assert blank.matches(Sample()) is True


@pytest.mark.parametrize(
    ("source", "matched"),
    [
        ('subject_parts[0] == "orders" && properties["tier"] == "gold"', True),
        ('subject_parts[1] == "us"', False),
        ('property_keys == ["a", "tier"]', True),
        ("body_size == 30", True),
        ("body_json.amount > 100 and 'x' in body_json.tags", True),
        ('body_text contains "amount"', True),
        ("visible_at == enqueued_at", True),
        ("body_json.missing", False),
        ('properties["missing"] == ""', True),
        ('get(properties, "missing") == nil', True),
        ("enqueued_at.Weekday().String() == 'Tuesday'", True),
        ("weeks(1) == days(7) and duration('1d12h') == hours(36)", True),
        ("seconds(body_json.missing) == seconds(0)", True),
        ("seconds(body_json.amount) == minutes(2.5 * 1 == 2.5 ? 2 : 3) + seconds(30)", True),
    ],
)
def test_matching(source: str, matched: bool) -> None:
    assert compile_filter(source).matches(ORDER, Budget()) is matched


def test_the_body_is_read_only_for_filters_that_mention_it(monkeypatch: Any) -> None:
    decoded: list[str] = []

    def counting(text: str) -> Any:
        decoded.append(text)
        return {"a": 1.0}

    monkeypatch.setattr("mqlite.expr.message.from_json", counting)
    sample = Sample(body=b"{}")
    filters = [compile_filter("body_size == 2"), compile_filter("$env.body_json.a == nil")]
    assert all(each.matches(sample) for each in filters)
    assert decoded == []
    assert compile_filter("body_json.a == 1").matches(sample)
    assert compile_filter("body_json.a == 1 and $env.body_json.a == 1").matches(sample)
    assert decoded == ["{}"], "worked out once, however many filters look at it"
    assert compile_filter("$env.body_json.a == nil").matches(sample)


def test_a_mention_that_the_optimiser_removes_is_none() -> None:
    assert "body_json" not in names(compile_filter("false && body_json.a.b"))
    assert "body_json" in names(compile_filter("body_json.a != nil"))


def names(filter: Filter) -> frozenset[str]:
    assert filter.program is not None
    return filter.program.names


@pytest.mark.parametrize(
    "body",
    [b"", b"[1]", b"{", b'{"a": 1} x', b'\xef\xbb\xbf{"a": 1}', b'{"a": 1e400}', b'{"a": NaN}'],
)
def test_anything_but_an_object_is_an_empty_one(body: bytes) -> None:
    sample = Sample(body=body)
    assert compile_filter("len(body_json) == 0").matches(sample)


def test_broken_text_stays_bytes() -> None:
    sample = Sample(body=b"\xff\xc3\xa9")
    assert compile_filter("len(body_text) == 2 and body_size == 3").matches(sample)
    assert compile_filter('body_text[1:] == "é" and body_text[1:2] + body_text[2:] == "é"').matches(
        sample
    )


def test_a_failure_is_an_error_of_ours() -> None:
    with pytest.raises(ExprRuntimeError, match="index out of range: 5"):
        compile_filter("subject_parts[5] == 'x'").matches(ORDER)
    with pytest.raises(ExprRuntimeError, match=r"bool\(float64\)"):
        compile_filter("body_json.amount").matches(ORDER)

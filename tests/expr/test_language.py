"""Corners of the language that no recorded outcome covers."""

from __future__ import annotations

from typing import Any

import pytest

from mqlite.expr import Env, ExprRuntimeError, ExprTypeError, compile, regex
from mqlite.expr.gotime import Duration
from mqlite.expr.message import MESSAGE_ENV, Sample
from mqlite.expr.values import AnyMap

SAMPLE = Sample(subject="a.b", body=b'{"a": [1, 2], "s": "h\xc3\xa9", "m": {"x": 1}}')


def run(source: str, env: Env = MESSAGE_ENV) -> Any:
    return compile(source, env).run(SAMPLE.values())


@pytest.mark.parametrize(
    ("source", "result"),
    [
        # The start of a reduce is evaluated when the loop is already at its first element.
        ("map([1, 2], reduce([10, 20], #acc + #, #))", [40, 40]),
        ("all(body_json.m, true)", True),
        ("let f = enqueued_at.Hour; f()", 0),
        ("{f: enqueued_at.Hour}.f()", 0),
        ('"é"[0:1] + "é"[1:2] == "é"', True),
        ('len("é"[0:1])', 1),
        ('body_json.s[1]', 0xC3),
        ('int("-0")', 0),
        ('int("00000000000000000000000000000000007")', 7),
        ('float("1_0.5")', 10.5),
        ('upper("straße")', "STRAßE"),
        ('lower("İSTANBUL")', "istanbul"),
        ("uniq([1, 1.0, true, 1])", [1, True]),
        ("9007199254740993 in [9007199254740992.0]", True),
        ("uniq([9007199254740993, 9007199254740992.0])", [9007199254740993]),
        ("[0 / 0] == [0 / 0]", False),
        ("let m = {a: 0 / 0}; m == m", True),
        ('fromJSON("\\"\\\\ud800x\\\\ud83d\\\\ude00\\"")', "\ufffdx😀"),
        ("true ? nil : 1", None),
    ],
)  # fmt: skip
def test_values(source: str, result: Any) -> None:
    assert run(source) == result


def test_groups_keep_keys_of_different_types_apart() -> None:
    groups = run('groupBy([1, 1.0, true, "1", 1], #)')
    assert isinstance(groups, AnyMap)
    assert [held for _, held in groups.entries.values()] == [[1, 1], [1.0], [True], ["1"]]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('date("2023-01-01 10:00:00.5", "2006-01-02 15:04:05")', "2023-01-01 10:00:00.5 +0000 UTC"),
        ('date("2023 060", "2006 002")', "2023-03-01 00:00:00 +0000 UTC"),
        ('date("10:00", "15:04", "Europe/Berlin")', "0000-01-01 10:00:00 +0053 LMT"),
        (
            'date("2023-03-26 02:30", "2006-01-02 15:04", "Europe/Berlin")',
            "2023-03-26 03:30:00 +0200 CEST",
        ),
        ('date("2024-02-29").AddDate(1, 0, 0)', "2025-03-01 00:00:00 +0000 UTC"),
        ('date("Mon, 02 Jan 2006 15:04:05 MST")', "2006-01-02 15:04:05 +0000 MST"),
        ('date("02 Jan 06 15:04 GMT+3")', "2006-01-02 15:04:00 +0300 GMT+3"),
    ],
)
def test_dates(source: str, text: str) -> None:
    assert run(f"{source}.String()") == text


@pytest.mark.parametrize(
    "source",
    [
        'date("2023-02-29")',
        'date("2023-01-01 24:00:00")',
        'date("2023-01-01 10:00:00.1234", "2006-01-02 15:04:05.000")',
        'date("2023-01-01 10:00:00.", "2006-01-02 15:04:05")',
        'date("2023 02 060", "2006 01 002")',
        'date("x", "")',
        "date(nil)",
        'timezone("../etc/passwd")',
    ],
)
def test_no_dates(source: str) -> None:
    with pytest.raises(ExprRuntimeError):
        run(source)


def test_the_plain_language_has_its_own_duration() -> None:
    plain = Env()
    assert run('duration("1h30m")', plain) == Duration(5_400_000_000_000)
    assert run('duration("1.5h")', plain) == Duration(5_400_000_000_000)
    with pytest.raises(ExprRuntimeError, match="invalid duration"):
        run('duration("1d")', plain)
    with pytest.raises(ExprTypeError, match="unknown name hours"):
        run("hours(1)", plain)


@pytest.mark.parametrize("pattern", [r"[(?<é>]x", r"\Q(?<é>\C\E", r"(?<a>é)", r"(?P<n>a)(?P<n>b)"])
def test_patterns(pattern: str) -> None:
    regex.compile(pattern)


@pytest.mark.parametrize("pattern", ["(?P<é>a)", r"é\C", r"[\C]", r"[[:alpha:]é]\C", "a\udc80"])
def test_no_patterns(pattern: str) -> None:
    with pytest.raises(regex.PatternError, match="error parsing regexp"):
        regex.compile(pattern)


@pytest.mark.parametrize(
    "source",
    [
        "map(false ? [1] : body_json.m, #)",
        "filter(false ? [1] : body_json.m, true)",
        "reduce(body_json.m, #acc)",
        "map([1], reduce(body_json.m, #acc, #))",
        "find(body_json.m, true)",
        "groupBy(body_json.m, 1)",
        "sortBy(body_json.m, 1)",
        "sum(body_json.m)",
    ],
)
def test_the_elements_of_a_map_cannot_be_looked_at(source: str) -> None:
    with pytest.raises(ExprRuntimeError):
        run(source)


def test_a_string_is_not_among_bytes() -> None:
    assert run('body_json.s in b"abc"') is False
    assert run('97 in b"abc"') is True

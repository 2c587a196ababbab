"""Filters on the command line."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import mqlite

from .conftest import Run

Ok = Callable[..., str]

MISTYPED = 'subjct == "a"'
EXPLAINED = """\
error: unknown name subjct (1:1)
 | subjct == "a"
 | ^
did you mean "subject"?
"""


def test_subscribing_with_a_filter(cli: Run, ok: Ok) -> None:
    ok("subscribe", "events", "eu", "--expr", 'subject == "eu"')
    ok("subscribe", "events", "all", "--expr", " ")
    assert ok("list-subscriptions") == (
        "all                  topic=events               filter=(match all)\n"
        'eu                   topic=events               filter=subject == "eu"\n'
    )
    assert json.loads(ok("list-subscriptions", "--output", "json")) == [
        {"topic": "events", "name": "all"},
        {"topic": "events", "name": "eu", "expr": 'subject == "eu"'},
    ]
    ok("send", "events", "--subject", "us", "hello")
    assert ok("receive", "eu") == "(no messages)\n"
    ok("subscribe", "events", "eu")
    ok("send", "events", "--subject", "us", "again")
    assert 'body="again"' in ok("receive", "eu")
    assert cli("subscribe", "events", "new", "--expr", MISTYPED) == (1, "", EXPLAINED)


def test_trying_a_filter(cli: Run, ok: Ok, database: Path) -> None:
    assert ok("test-filter", 'subject == "a"') == "ok: valid, no sample\n"
    assert ok("test-filter", 'subject == "a"', "--subject", "a") == "ok: valid, matched\n"
    assert ok("test-filter", 'subject == "a"', "x") == "ok: valid, not matched\n"
    assert ok("test-filter", "", "x") == "ok: valid, matched\n"
    assert cli("test-filter", MISTYPED) == (1, "", EXPLAINED)
    assert cli("test-filter", "body_json.n > 1", "{}") == (
        1,
        "",
        "error: invalid operation: <nil> > int (1:13)\n | body_json.n > 1\n | ............^\n",
    )
    assert not database.exists()


def test_trying_a_filter_as_json(cli: Run) -> None:
    result = cli("test-filter", 'body_text == "x"', "x", "--output", "json")
    assert (result.code, result.err) == (0, "")
    assert result.out == '{\n  "valid": true,\n  "ran": true,\n  "matched": true\n}\n'
    result = cli("test-filter", MISTYPED, "--output", "json")
    assert (result.code, result.err) == (1, EXPLAINED)
    assert json.loads(result.out) == {
        "valid": False,
        "error": EXPLAINED.removeprefix("error: ").removesuffix("\n"),
        "ran": False,
        "matched": False,
    }
    result = cli("test-filter", "subject_parts[0] == ''", "x", "--output", "json")
    assert result.code == 1
    assert list(json.loads(result.out)) == ["valid", "error", "ran", "matched"]


@pytest.mark.parametrize(
    ("expr", "sample"),
    [
        ('body_text == "a b"', ["a b"]),
        ('body_text == ""', [""]),
        ('subject == ""', ["--subject", ""]),
        ('group_id == "g"', ["--group", "g"]),
        ('properties["a"] + properties["b"] == "12"', ["--prop", "a=1,b=2"]),
        ('content_type == "c"', ["--content-type=c"]),
        ('message_id == "m"', ["-message-id", "m"]),
        ('correlation_id == "c"', ["--correlation-id", "c"]),
        ('reply_to == "r"', ["--reply-to", "r"]),
        ("visible_at - enqueued_at == hours(2)", ["--delay", "2h"]),
    ],
)
def test_every_part_of_a_sample(ok: Ok, expr: str, sample: list[str]) -> None:
    assert ok("test-filter", expr, *sample) == "ok: valid, matched\n"


def test_a_sample_body_from_elsewhere(
    cli: Run, ok: Ok, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "body"
    file.write_bytes(b"\xff\n")
    expr = "body_size == 2"
    assert ok("test-filter", expr, "--file", str(file)) == "ok: valid, matched\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n")))
    assert ok("test-filter", expr, "-") == "ok: valid, matched\n"
    assert cli("test-filter", expr, "x", "--file", str(file)).code == 1
    assert cli("test-filter", expr, "--prop", "a").code == 1
    assert cli("test-filter", expr, "--file", str(tmp_path / "none")).code == 1


def test_trying_a_filter_at_a_broker(ok: Ok, mq: mqlite.Embedded) -> None:
    with mq.serving(tokens="off") as url:
        endpoint = ("--endpoint", url)
        assert ok("test-filter", "true", "x", *endpoint) == "ok: valid, matched\n"
        assert ok(
            "test-filter", "visible_at - enqueued_at == hours(1)", "--delay=1h", *endpoint
        ) == ("ok: valid, matched\n")

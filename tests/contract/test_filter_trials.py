"""Trying a filter, with and without a sample message."""

from __future__ import annotations

import pytest

import mqlite
from contract.filtering import FAILS, GOLD, REFUSED
from contract.looks import DAY, HOUR, SECOND
from contract.ways import EPOCH, World
from mqlite import FilterTest, OutMessage
from mqlite.api import MQ
from mqlite.clock import ManualClock

SAMPLE = OutMessage(
    body=b'{"amount": 150, "nested": {"k": "v"}, "tags": ["a", "b"], "n": null, "ok": true}',
    subject="orders.eu.new",
    group_id="g1",
    correlation_id="c1",
    reply_to="r1",
    message_id="m1",
    content_type="application/json",
    properties={"tier": "gold", "region": "eu"},
)
MATCHING = [
    'subject == "orders.eu.new"',
    'subject startsWith "orders."',
    'subject endsWith ".new"',
    'subject contains "eu"',
    'subject matches "^orders\\\\.(eu|us)\\\\."',
    'group_id == "g1"',
    'correlation_id == "c1"',
    'reply_to == "r1"',
    'message_id == "m1"',
    'content_type == "application/json"',
    GOLD,
    '"tier" in properties',
    'not ("absent" in properties)',
    'properties["absent"] == ""',
    'properties["tier"] in ["gold", "silver"]',
    'subject_parts[0] == "orders" && len(subject_parts) == 3',
    'subject_parts == ["orders", "eu", "new"]',
    'property_keys == ["region", "tier"]',
    "body_size == 80",
    'all(property_keys, len(#) > 0) and any(subject_parts, # == "eu")',
    "body_json.amount > 100",
    'body_json["amount"] == 150',
    'body_json.nested.k == "v"',
    'body_json.tags[1] == "b"',
    '"a" in body_json.tags',
    "len(body_json.tags) == 2",
    "body_json.n == nil",
    '"absent" not in body_json',
    "body_json.ok",
    'body_text startsWith "{" && len(body_text) == body_size',
    "enqueued_at.Hour() == 13",
    'enqueued_at.Weekday().String() == "Friday"',
    "enqueued_at.Year() == 1970",
    "visible_at - enqueued_at == hours(36)",
    "visible_at - enqueued_at > days(1)",
    "visible_at - enqueued_at < weeks(1)",
    'visible_at - enqueued_at == duration("1d12h")',
    'visible_at - enqueued_at == duration("1.5d")',
    "visible_at > enqueued_at",
    "minutes(90) == hours(1) + seconds(1800)",
    "weeks(2) == days(14)",
]
AT = EPOCH.replace(day=2, hour=13)
LATER = EPOCH.replace(day=4, hour=1)


def test_trying_a_filter_with_a_sample(mq: MQ) -> None:
    tested = {
        expr: mq.test_filter(expr, SAMPLE, enqueued_at=AT, visible_at=LATER) for expr in MATCHING
    }
    good = FilterTest(valid=True, ran=True, matched=True)
    assert {expr: result for expr, result in tested.items() if result != good} == {}


def test_trying_a_filter(mq: MQ) -> None:
    def ran(matched: bool, error: str = "") -> FilterTest:
        return FilterTest(valid=True, ran=True, matched=matched, error=error)

    untried = FilterTest(valid=True, ran=False, matched=False)
    assert mq.test_filter("") == mq.test_filter("  ") == mq.test_filter("true") == untried
    assert mq.test_filter("", b"") == ran(True)
    assert mq.test_filter("subject == 'a'", b"x") == ran(False)
    assert mq.test_filter(FAILS, OutMessage(subject="a.b")) == ran(
        False,
        "index out of range: 3 (array length is 2) (1:14)\n"
        " | subject_parts[3] == 'x'\n"
        " | .............^",
    )
    for expr, error in REFUSED.items():
        refused = FilterTest(valid=False, ran=False, matched=False, error=error)
        assert mq.test_filter(expr) == mq.test_filter(expr, "x") == refused
    assert mq.test_filter("body_text == 'é'", "é") == ran(True)
    assert (mq.list_queues(), mq.list_subscriptions()) == ([], [])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("1s", 1),
        ("90m", 5400),
        ("1h30m", 5400),
        ("1d", 86_400),
        ("1d12h", 129_600),
        ("1.5d", 129_600),
        ("2w", 1_209_600),
        ("-1d", -86_400),
        ("+2h", 7200),
        (".5m", 30),
        ("1500ms", 1.5),
        ("", None),
        ("1y", None),
        ("3mo", None),
        ("1d x", None),
        ("5", None),
    ],
)
def test_durations(mq: MQ, text: str, seconds: float | None) -> None:
    # A literal would be refused at once; a property is looked at when the filter runs.
    expr = f'duration(properties["d"]).Milliseconds() == {round((seconds or 0) * 1000)}'
    result = mq.test_filter(expr, OutMessage(properties={"d": text}))
    assert (result.valid, result.matched) == (True, seconds is not None)
    assert bool(result.error) is (seconds is None)


def test_what_a_message_does_not_have(mq: MQ) -> None:
    expr = (
        'properties["x"] == "" && "x" not in properties && len(property_keys) == 0'
        ' && len(subject_parts) == 0 && subject == "" && body_size == 0 && body_text == ""'
        " && len(body_json) == 0 && visible_at == enqueued_at"
    )
    assert mq.test_filter(expr, OutMessage()).matched
    mq.subscribe("t", "s", expr=expr)
    assert mq.send("t") > 0


@pytest.mark.parametrize(
    ("body", "content_type", "matched"),
    [
        (b'{"a": 1}', "", True),
        (b'{"a": 1}', "application/problem+JSON; charset=utf-8", True),
        (b'{"a": 1}', "text/plain", False),
        (b'{"a": 1', "", False),
        (b"[1]", "", False),
        (b"", "", False),
    ],
)
def test_anything_but_a_json_object_reads_as_an_empty_one(
    mq: MQ, body: bytes, content_type: str, matched: bool
) -> None:
    sample = OutMessage(body=body, content_type=content_type)
    assert mq.test_filter('"a" in body_json', sample).matched is matched
    assert mq.test_filter("len(body_json) == 0", sample).matched is not matched
    assert mq.test_filter("body_json.absent > 1", sample).error.startswith("invalid operation: ")


def test_a_sample_is_sent_now_and_visible_at_once_unless_it_says_otherwise(world: World) -> None:
    mq = world.mq
    world.clock.set(DAY + 13 * HOUR)
    assert mq.test_filter("enqueued_at.Hour() == 13 && visible_at == enqueued_at", b"").matched
    assert mq.test_filter("visible_at == enqueued_at", b"", enqueued_at=AT).matched
    due = world.at(5 * SECOND)
    assert mq.test_filter("visible_at - enqueued_at == seconds(5)", b"", visible_at=due).matched


def test_a_delay_counts_from_the_moment_of_the_sample() -> None:
    class Ticking(ManualClock):
        """Time passes between any two looks."""

        def now(self) -> int:
            return self.advance(1)

    with mqlite.open(":memory:", clock=Ticking()) as mq:
        assert mq.test_filter("visible_at - enqueued_at == hours(2)", b"", visible_at="2h").matched


def test_a_sample_is_checked_like_a_message(mq: MQ) -> None:
    with pytest.raises(mqlite.MessageTooLarge):
        mq.test_filter("true", b"x" * (1024 * 1024 + 1))
    with pytest.raises(mqlite.InvalidArgument, match="expr"):
        mq.test_filter("\ud800")
    with pytest.raises(mqlite.InvalidArgument, match="subject"):
        mq.test_filter("true", OutMessage(subject="\ud800"))

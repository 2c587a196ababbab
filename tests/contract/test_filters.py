"""Filters: what reaches which subscription, and what trying one shows."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

import mqlite
from contract.looks import DAY, HOUR, MINUTE, SECOND, bodies, counts, one
from contract.ways import EPOCH, World
from expr.vectors import FOLDER, read
from mqlite import FilterTest, OutMessage
from mqlite.api import MQ
from mqlite.embedded import sending
from mqlite.embedded.transaction import transaction, transaction_async
from mqlite.engine import routing
from mqlite.engine.steps import Event
from mqlite.expr import Budget
from mqlite.expr.message import Filter

GOLD = 'properties["tier"] == "gold"'
FAILS = "subject_parts[3] == 'x'"
"""Fails for a subject of fewer than four parts."""
HOSTILE = "all(1..9000, # > 0)"
"""Costs 9,000 units of work."""


class Records(logging.Handler):
    """Keeps what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def logged() -> Iterator[list[logging.LogRecord]]:
    handler = Records()
    logging.getLogger("mqlite").addHandler(handler)
    yield handler.records
    logging.getLogger("mqlite").removeHandler(handler)


@pytest.fixture
def failed(world: World) -> Counter[int]:
    """How many messages failed filters, by the id of the queue that did not get them."""
    seen: Counter[int] = Counter()

    def listen(events: Sequence[Event]) -> None:
        for event in events:
            if event.event == "filter_failed":
                seen[event.queue_id] += event.number

    world.core.store.events.append(listen)
    return seen


def queue_id(mq: MQ, name: str) -> int:
    [found] = [info for info in mq.list_queues() if info.name == name]
    return int(found.generation)


def told(record: logging.LogRecord) -> tuple[str, str, str]:
    """The fields of a log line on a failed filter."""
    fields = record.__dict__
    return fields["subscription"], fields["expr"], fields["error"]


# Routing


def test_a_message_reaches_the_subscriptions_whose_filter_accepts_it(mq: MQ) -> None:
    for name, expr in {
        "all": "",
        "eu": 'len(subject_parts) >= 2 && subject_parts[1] == "eu"',
        "gold": GOLD,
        "orders": 'subject startsWith "orders."',
        "small": "body_size < 3",
    }.items():
        mq.subscribe("t", name, expr=expr)
    messages = [
        OutMessage(body=b"1", subject="orders.eu.new", properties={"tier": "gold"}),
        OutMessage(body=b"2", subject="orders.us.new"),
        OutMessage(body=b"333", subject="invoices.eu"),
        OutMessage(body=b"4", subject="plain", properties={"tier": "gold"}),
    ]
    for message in messages:
        mq.send_batch("t", [message])
    expected = {
        "all": [b"1", b"2", b"333", b"4"],
        "eu": [b"1", b"333"],
        "gold": [b"1", b"4"],
        "orders": [b"1", b"2"],
        "small": [b"1", b"2", b"4"],
    }
    assert {name: bodies(mq.peek(name)) for name in expected} == expected
    mq.send_batch("t", messages)
    assert {name: bodies(mq.peek(name)) for name in expected} == {
        name: one_by_one * 2 for name, one_by_one in expected.items()
    }


def test_bodies_are_routed_by_what_they_hold(mq: MQ) -> None:
    mq.subscribe("t", "big", expr='"amount" in body_json && body_json.amount > 100')
    mq.subscribe("t", "gold", expr='body_json.tier == "gold"')
    mq.subscribe("t", "urgent", expr='body_text contains "urgent"')
    sent = [b'{"amount":150,"tier":"gold"}', b'{"amount":50}', b"urgent!", b'{"tier":"gold"}']
    mq.send_batch("t", sent)
    assert bodies(mq.peek("big")) == [sent[0]]
    assert bodies(mq.peek("gold")) == [sent[0], sent[3]]
    assert bodies(mq.peek("urgent")) == [sent[2]]


def test_the_number_answered_is_that_of_the_last_accepting_subscription(mq: MQ) -> None:
    mq.subscribe("t", "a")
    mq.subscribe("t", "b", expr=GOLD)
    numbers = mq.send_batch("t", [OutMessage(properties={"tier": "gold"}), OutMessage()])
    assert numbers == [one(mq, "b").seq_number, mq.peek("a")[1].seq_number]


def test_a_publish_that_nobody_accepts_stores_nothing(world: World) -> None:
    mq = world.mq
    for name in "ab":
        mq.subscribe("t", name, expr=GOLD)
    assert mq.send("t", b"x") == 0
    assert mq.send_batch("t", [b"x", b"y"]) == [0, 0]
    assert counts(mq, "a") == counts(mq, "b") == {}
    assert world.rows("SELECT count(*) FROM mqlite_payloads") == [(0,)]


def test_an_unknown_name_is_an_error(mq: MQ) -> None:
    mq.subscribe("t", "s", expr=GOLD)
    with pytest.raises(mqlite.NotFound):
        mq.send("nowhere", b"x")


def test_only_subscriptions_that_accept_a_message_ask_for_its_group(mq: MQ) -> None:
    mq.subscribe("t", "a")
    mq.subscribe("t", "b", expr=GOLD)
    mq.create_queue("b", kind="subscription", ordering_mode="group_fifo")
    mq.send("t", b"x")
    assert (counts(mq, "a"), counts(mq, "b")) == ({"active": 1}, {})
    with pytest.raises(mqlite.GroupRequired):
        mq.send("t", b"x", properties={"tier": "gold"})
    assert (counts(mq, "a"), counts(mq, "b")) == ({"active": 1}, {})


def test_a_scheduled_message_is_routed_by_when_it_becomes_visible(world: World) -> None:
    mq = world.mq
    mq.subscribe("t", "delayed", expr="visible_at - enqueued_at > hours(1)")
    mq.subscribe("t", "now", expr="visible_at == enqueued_at")
    mq.send("t", b"now")
    mq.send("t", b"live", ttl="1d")
    mq.send("t", b"later", at=world.at(2 * HOUR))
    mq.send_batch("t", [b"soon"], at=world.at(MINUTE), ttl="1d")
    assert bodies(mq.peek("now")) == [b"now", b"live"]
    assert [(m.body, m.state) for m in mq.peek("delayed")] == [(b"later", "scheduled")]
    world.later(2 * HOUR)
    assert bodies(mq.receive("delayed")) == [b"later"]


def test_a_filter_sees_the_clock_of_the_queue(world: World) -> None:
    world.clock.set(DAY + 13 * HOUR)
    world.mq.subscribe("t", "s", expr="enqueued_at.Hour() == 13 && enqueued_at.Day() == 2")
    assert world.mq.send("t", b"x") > 0
    world.clock.advance(HOUR)
    assert world.mq.send("t", b"x") == 0


def test_no_message_no_failure(mq: MQ, logged: list[logging.LogRecord]) -> None:
    mq.subscribe("t", "s", expr=FAILS)
    assert mq.send_batch("t", []) == []
    assert logged == []


# Subscribing


REFUSED = {
    'subjct == "a"': 'unknown name subjct (1:1)\n | subjct == "a"\n | ^\ndid you mean "subject"?',
    "subject ==": "unexpected token EOF (1:10)\n | subject ==\n | .........^",
    "body_size + 1": "expected bool, but got int",
    "a" * 4097: "expression too long (4097 > 4096 bytes)",
}


@pytest.mark.parametrize("expr", REFUSED)
def test_a_bad_filter_is_refused_by_the_words_of_the_language(mq: MQ, expr: str) -> None:
    with pytest.raises(mqlite.InvalidArgument) as refused:
        mq.subscribe("t", "s", expr=expr)
    assert str(refused.value) == REFUSED[expr]
    assert (mq.list_queues(), mq.list_subscriptions()) == ([], [])
    mq.subscribe("t", "s", expr=GOLD)
    with pytest.raises(mqlite.InvalidArgument):
        mq.subscribe("t", "s", expr=expr)
    assert [entry.expr for entry in mq.list_subscriptions()] == [GOLD]
    assert mq.send("t", b"x") == 0


def test_subscribing_again_replaces_the_filter_for_the_next_publish(mq: MQ) -> None:
    mq.subscribe("t", "s", expr='subject == "a"')
    mq.subscribe("t", "other", expr="false")
    assert mq.send("t", b"1", subject="a") > 0
    mq.subscribe("t", "s", expr='subject == "b"')
    assert mq.send("t", b"2", subject="a") == 0
    assert mq.send("t", b"3", subject="b") > 0
    mq.subscribe("t", "s")
    assert mq.send("t", b"4", subject="c") > 0
    assert bodies(mq.peek("s")) == [b"1", b"3", b"4"]
    assert counts(mq, "other") == {}


def test_filters_are_listed_and_survive(world: World) -> None:
    world.mq.subscribe("t", "b", expr=GOLD)
    world.mq.subscribe("t", "a")
    mq = world.reopen()
    assert [(s.topic, s.name, s.expr) for s in mq.list_subscriptions()] == [
        ("t", "a", ""),
        ("t", "b", GOLD),
    ]
    mq.send("t", b"x")
    assert (counts(mq, "a"), counts(mq, "b")) == ({"active": 1}, {})


# Failing closed


def test_a_filter_that_fails_lets_nothing_through_and_disturbs_nobody(
    world: World, failed: Counter[int], logged: list[logging.LogRecord]
) -> None:
    mq = world.mq
    for name, expr in {"a": "", "bad": FAILS, "c": "true"}.items():
        mq.subscribe("t", name, expr=expr)
    assert mq.send("t", b"secret", subject="a.b") > 0
    assert mq.send("t", b"", subject="a.b.c.x") > 0
    assert [len(mq.peek(name)) for name in ("a", "bad", "c")] == [2, 1, 2]
    assert failed == {queue_id(mq, "bad"): 1}
    [record] = logged
    error = "index out of range: 3 (array length is 2) (1:14)"
    assert (record.name, record.levelname) == ("mqlite", "ERROR")
    assert told(record) == ("bad", FAILS, error)
    assert record.getMessage() == (
        f"a filter failed: subscription='bad' expr={FAILS!r} error={error!r} messages=1"
    )


def test_the_failures_of_a_call_are_counted_and_each_kind_logged_once(
    world: World, failed: Counter[int], logged: list[logging.LogRecord]
) -> None:
    mq = world.mq
    mq.subscribe("t", "bad", expr=FAILS)
    mq.subscribe("t", "worse", expr="body_json.n > 1")
    texts = ("", "", "a", "a.b.c.x")
    mq.send_batch("t", [OutMessage(subject=text) for text in texts])
    assert failed == {queue_id(mq, "bad"): 3, queue_id(mq, "worse"): 4}
    assert [(record.args["subscription"], record.args["number"]) for record in logged] == [
        ("bad", 2),
        ("bad", 1),
        ("worse", 4),
    ]


@pytest.mark.parametrize(
    ("expr", "error"),
    [
        ("duration(body_text) > days(1)", "failed (1:1): try it with a sample to see why"),
        ("int(body_text) > 1", "invalid operation: int(…) (1:1)"),
        ("body_json.x[body_text] == 1", "failed (1:12): try it with a sample to see why"),
        ("body_json.a.b == 1", "cannot fetch b from <nil> (1:13)"),
        ("body_json.flag", None),
    ],
)
def test_what_a_message_holds_is_not_logged(
    mq: MQ, logged: list[logging.LogRecord], expr: str, error: str | None
) -> None:
    mq.subscribe("t", "s", expr=expr)
    assert mq.send("t", b"secret") == 0
    assert [told(record)[2] for record in logged] == ([error] if error else [])
    assert "secret" not in "".join(record.getMessage() for record in logged)


def test_nothing_is_told_of_a_publish_that_failed(
    world: World, failed: Counter[int], logged: list[logging.LogRecord]
) -> None:
    mq = world.mq
    mq.subscribe("t", "a", expr=FAILS)
    mq.subscribe("t", "b")
    mq.create_queue("b", kind="subscription", ordering_mode="group_fifo")
    with pytest.raises(mqlite.GroupRequired):
        mq.send("t", b"x")
    assert (failed, logged) == ({}, [])


def test_a_stored_filter_that_compiles_no_more_lets_nothing_through(
    world: World, logged: list[logging.LogRecord]
) -> None:
    world.mq.subscribe("t", "s", expr="true")
    world.mq.subscribe("t", "z")
    world.close()
    with closing(sqlite3.connect(world.path)) as connection, connection:
        connection.execute("UPDATE mqlite_subscriptions SET expr = 'subjct' WHERE name = 's'")
    mq = world.open()
    assert mq.send("t", b"x") > 0
    assert (counts(mq, "s"), counts(mq, "z")) == ({}, {"active": 1})
    assert [told(record) for record in logged] == [("s", "subjct", "unknown name subjct (1:1)")]
    mq.subscribe("t", "s", expr="true")
    mq.send("t", b"x")
    assert counts(mq, "s") == {"active": 1}


def test_a_failure_nobody_foresaw_lets_nothing_through(
    mq: MQ, logged: list[logging.LogRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    def matches(self: Filter, sample: object, budget: object = None) -> bool:
        raise ZeroDivisionError("secret")

    mq.subscribe("t", "s", expr="true")
    monkeypatch.setattr(Filter, "matches", matches)
    assert mq.send("t", b"x") == 0
    assert [told(record) for record in logged] == [("s", "true", "unexpected ZeroDivisionError")]


def test_the_work_of_a_call_is_bounded(
    world: World,
    failed: Counter[int],
    logged: list[logging.LogRecord],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def budget(work: int = 20_000) -> Budget:
        return Budget(work)

    monkeypatch.setattr(routing, "Budget", budget)
    mq = world.mq
    for name in ("h1", "h2", "h3"):
        mq.subscribe("t", name, expr=HOSTILE)
    mq.subscribe("t", "plain", expr='subject == ""')
    for _ in range(2):
        mq.send("t", b"x")
    assert [len(mq.peek(name)) for name in ("h1", "h2", "h3", "plain")] == [2, 2, 0, 2]
    assert failed == {queue_id(mq, "h3"): 2}
    assert {told(record)[2] for record in logged} == {"work budget exceeded (1:1)"}
    mq.send_batch("t", [b"x"] * 5)
    assert [len(mq.peek(name)) for name in ("h1", "h2", "h3", "plain")] == [3, 3, 0, 7]


# Where filters run


def test_filters_run_outside_the_writer_once_the_topic_is_settled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside: list[bool] = []
    matches = Filter.matches

    def watched(self: Filter, sample: Any, budget: Budget | None = None) -> bool:
        inside.append(world.core.store._connection.in_transaction)
        return matches(self, sample, budget)

    monkeypatch.setattr(Filter, "matches", watched)
    for expr in ("true", "not false"):
        world.mq.subscribe("t", "s", expr=expr)
        for _ in range(2):
            world.mq.send("t", b"x")
    assert inside == [False] * 4


def test_routes_are_worked_out_anew_when_the_topic_has_changed_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    mq, core = world.mq, world.core
    mq.subscribe("t", "s", expr='subject == "a"')
    mq.send("t", b"1", subject="a")
    operation = core.calls.send("t", [OutMessage(body=b"2", subject="a")], None, None)
    mq.subscribe("t", "s", expr='subject == "b"')
    mq.subscribe("t", "r", expr='subject == "a"')
    core.run(operation)
    assert (bodies(mq.peek("s")), bodies(mq.peek("r"))) == ([b"1"], [b"2"])


@pytest.mark.parametrize("way", ["async", "http"])
@pytest.mark.parametrize(
    ("expr", "message"),
    [(HOSTILE, OutMessage()), ("body_size > 0", OutMessage(body=b"x" * 100_000))],
)
def test_the_event_loop_does_not_wait_for_long_filters(
    world: World, expr: str, message: OutMessage, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def watched(*args: Any) -> routing.Routes:
        threads.append(threading.current_thread())
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return routing.route(*args)

    monkeypatch.setattr(sending, "route", watched)
    world.mq.subscribe("t", "s", expr=expr)
    assert world.mq.send_batch("t", [message])[0] > 0
    assert len(threads) == 1
    world.mq.subscribe("t", "s", expr="body_size < 3")
    assert world.mq.send("t", b"x") > 0
    assert len(threads) == 1


# Transactions and joins


def test_filters_apply_inside_a_transaction(
    world: World, failed: Counter[int], logged: list[logging.LogRecord]
) -> None:
    mq = world.mq
    mq.subscribe("t", "gold", expr=GOLD + " && visible_at == enqueued_at")
    mq.subscribe("t", "bad", expr=FAILS)
    for rolled_back in (True, False):
        try:
            with transaction(world.core.store, world.core.calls) as tx:
                assert tx.send("t", b"1", properties={"tier": "gold"}) > 0
                assert tx.send_batch("t", [b"2", b"3"]) == [0, 0]
                assert logged == []
                if rolled_back:
                    raise LookupError
        except LookupError:
            assert (failed, logged) == ({}, [])
    assert bodies(mq.peek("gold")) == [b"1"]
    assert failed == {queue_id(mq, "bad"): 3}
    assert [record.args["number"] for record in logged] == [1, 2]


def test_filters_apply_inside_a_transaction_of_a_task(world: World) -> None:
    world.mq.subscribe("t", "s", expr=GOLD)

    async def publish() -> list[int]:
        async with transaction_async(world.core.store, world.core.calls) as tx:
            return [
                await tx.send("t", b"1", properties={"tier": "gold"}),
                await tx.send("t", b"2"),
            ]

    number, none = asyncio.run(publish())
    assert (number > 0, none) == (True, 0)
    assert bodies(world.mq.peek("s")) == [b"1"]


@pytest.mark.parametrize("how", ["join", "outbox"])
def test_filters_apply_in_the_transaction_of_another_connection(
    world: World, how: str, failed: Counter[int], logged: list[logging.LogRecord]
) -> None:
    mq = world.mq
    mq.subscribe("t", "gold", expr=GOLD)
    mq.subscribe("t", "bad", expr=FAILS)
    connect = {"join": world.core.join, "outbox": mqlite.outbox}[how]
    with closing(sqlite3.connect(world.path)) as connection:
        for end in (connection.rollback, connection.commit):
            joined = connect(connection)
            assert joined.send("t", b"1", properties={"tier": "gold"}) > 0
            assert joined.send("t", b"2") == 0
            end()
            world.core.store.look()
            if end == connection.rollback:
                assert (failed, logged) == ({}, [])
    assert bodies(mq.peek("gold")) == [b"1"]
    assert failed == {queue_id(mq, "bad"): 2}
    error = "index out of range: 3 (array length is 0) (1:14)"
    assert [told(record) for record in logged] == [("bad", FAILS, error)] * 2


# Trying a filter


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


def test_a_sample_is_checked_like_a_message(mq: MQ) -> None:
    with pytest.raises(mqlite.MessageTooLarge):
        mq.test_filter("true", b"x" * (1024 * 1024 + 1))
    with pytest.raises(mqlite.InvalidArgument, match="expr"):
        mq.test_filter("\ud800")
    with pytest.raises(mqlite.InvalidArgument, match="subject"):
        mq.test_filter("true", OutMessage(subject="\ud800"))


# The recorded outcomes of the reference engine


@pytest.mark.skipif(not FOLDER.exists(), reason="the vectors are not here")
@pytest.mark.parametrize("batch", [True, False])
def test_publishing_routes_as_the_reference_does(world: World, batch: bool) -> None:
    mq = world.mq
    recorded = read("expr_message.jsonl")
    queues: dict[str, str] = {}
    refused = {vector["expr"] for vector in recorded if vector.get("error") == "compile"}
    for number, expr in enumerate({vector["expr"]: None for vector in recorded}):
        if expr in refused:
            with pytest.raises(mqlite.InvalidArgument):
                mq.subscribe("t", f"s{number}", expr=expr)
        else:
            queues[expr] = f"s{number}"
            mq.subscribe("t", f"s{number}", expr=expr)
    # Filters do not see the priority, so it can tell which message it is.
    marks: dict[str, int] = {}
    sends: dict[int, list[OutMessage]] = {}
    for vector in recorded:
        message = vector["message"]
        text = json.dumps(message, sort_keys=True)
        if text not in marks:
            marks[text] = len(marks)
            assert message["enqueued_at_ms"] == NOW
            made = out_message(message, priority=marks[text])
            sends.setdefault(message.get("visible_at_ms", NOW), []).append(made)
    world.clock.set(NOW)
    for due, messages in sends.items():
        at = world.at(due - NOW) if due > NOW else None
        for part in [messages] if batch else [[message] for message in messages]:
            mq.send_batch("t", part, at=at)
    got = {
        expr: {message.priority for message in mq.peek(queue, max_messages=1000)}
        for expr, queue in queues.items()
    }
    for vector in recorded:
        mark = marks[json.dumps(vector["message"], sort_keys=True)]
        assert (mark in got.get(vector["expr"], ())) == vector["matched"], vector


NOW = 1_700_000_000_000


def out_message(recorded: dict[str, Any], priority: int) -> OutMessage:
    fields = {name: value for name, value in recorded.items() if not name.endswith("_ms")}
    encoded = fields.pop("body_b64", None)
    body = base64.b64decode(encoded) if encoded else fields.pop("body", "").encode()
    return OutMessage(**fields | {"body": body}, priority=priority)

"""Filters: what reaches which subscription."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

import mqlite
from contract.filtering import GOLD, REFUSED
from contract.looks import DAY, HOUR, MINUTE, bodies, counts, one
from contract.ways import World
from expr.vectors import FOLDER, read
from mqlite import OutMessage
from mqlite.api import MQ


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


@pytest.mark.parametrize(
    "expr",
    [
        "subject == 1",
        "subject > 5",
        "days(1.5) == days(1)",
        "nosuch(subject)",
        'subject matches "("',
        "subject",
        "subject_parts.x",
        " or ".join(["true"] * 501),
    ],
)
def test_other_bad_filters(mq: MQ, expr: str) -> None:
    with pytest.raises(mqlite.InvalidArgument):
        mq.subscribe("t", "s", expr=expr)
    assert (mq.list_queues(), mq.list_subscriptions()) == ([], [])


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


@pytest.mark.skipif(not FOLDER.exists(), reason=f"the vectors are not at {FOLDER}")
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

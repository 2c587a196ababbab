"""Topics: fan-out, and the one namespace."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import mqlite
from contract.looks import HOUR, MINUTE, SECOND, bodies, counts, info, one, peeked
from contract.ways import World
from mqlite import OutMessage
from mqlite.api import MQ

Call = Callable[[MQ], object]


def subscriptions(mq: MQ) -> list[tuple[str, str, str]]:
    return [(entry.topic, entry.name, entry.expr) for entry in mq.list_subscriptions()]


def test_every_subscription_gets_a_copy(mq: MQ) -> None:
    mq.subscribe("orders", "billing")
    mq.subscribe("orders", "audit")
    mq.send_batch("orders", [b"a", b"b"])
    for name in ("audit", "billing"):
        received = mq.receive(name, max_messages=10)
        assert bodies(received) == [b"a", b"b"]
        for message in received:
            message.complete()
        assert counts(mq, name) == {}


def test_the_number_answered_is_that_of_the_last_subscription_by_name(mq: MQ) -> None:
    for name in ("b", "a", "c"):
        mq.subscribe("t", name)
    seq = mq.send("t", b"x")
    assert one(mq, "c").seq_number == seq
    assert one(mq, "a").seq_number < one(mq, "b").seq_number < seq


def test_a_copy_carries_every_field(mq: MQ) -> None:
    mq.subscribe("t", "s")
    mq.send("t", b"x" * 3000, subject="s", properties={"k": "v"}, reply_to="r", priority=3)
    message = one(mq, "s")
    assert (message.body, message.subject, message.reply_to) == (b"x" * 3000, "s", "r")
    assert (message.properties, message.priority) == ({"k": "v"}, 3)


def test_copies_are_independent(mq: MQ) -> None:
    mq.subscribe("t", "a")
    mq.subscribe("t", "b")
    mq.send("t", b"x")
    one(mq, "a").complete()
    assert (counts(mq, "a"), counts(mq, "b")) == ({}, {"active": 1})
    one(mq, "b").reject()
    assert (counts(mq, "a"), counts(mq, "b")) == ({}, {"dead_lettered": 1})


def test_a_scheduled_publish_fans_out_scheduled_copies(world: World) -> None:
    mq = world.mq
    mq.subscribe("t", "a")
    mq.subscribe("t", "b")
    mq.send("t", b"x", at=world.at(5 * SECOND))
    assert counts(mq, "a") == counts(mq, "b") == {"scheduled": 1}
    world.later(5 * SECOND)
    assert bodies(mq.receive("a") + mq.receive("b")) == [b"x", b"x"]


def test_each_copy_follows_its_own_queues_settings(world: World) -> None:
    mq = world.mq
    mq.subscribe("t", "a")
    mq.subscribe("t", "b")
    mq.create_queue("a", kind="subscription", default_ttl="1m", lock_duration="1m")
    mq.send("t", b"x", ttl="1h")
    now = world.clock.now()
    assert peeked(mq, "a", 1).expires_at_ms == now + MINUTE
    assert peeked(mq, "b", 2).expires_at_ms == now + HOUR
    assert one(mq, "a").locked_until_ms == now + MINUTE
    assert one(mq, "b").locked_until_ms == now + 30 * SECOND


def test_a_missing_group_for_one_subscription_fails_the_whole_call(mq: MQ) -> None:
    mq.subscribe("t", "a")
    mq.subscribe("t", "b")
    mq.create_queue("b", kind="subscription", ordering_mode="group_fifo")
    with pytest.raises(mqlite.GroupRequired):
        mq.send_batch("t", [OutMessage(body=b"1", group_id="g"), b"2"])
    assert counts(mq, "a") == counts(mq, "b") == {}
    mq.send("t", b"1", group_id="g")
    assert counts(mq, "a") == counts(mq, "b") == {"active": 1}


def test_duplicates_are_judged_by_each_copys_queue(mq: MQ) -> None:
    mq.subscribe("t", "a")
    mq.subscribe("t", "b")
    mq.create_queue("a", kind="subscription", dedup_window="1m")
    mq.send("t", b"x", message_id="1")
    mq.send("t", b"x", message_id="1")
    assert counts(mq, "a") == {"active": 1}
    assert counts(mq, "b") == {"active": 2}


def test_a_conflict_in_one_subscription_skips_that_copy_only(mq: MQ) -> None:
    mq.subscribe("t", "a")
    mq.subscribe("t", "b")
    mq.create_queue("a", kind="subscription", dedup_window="1m")
    mq.send("t", b"x", message_id="1")
    seq = mq.send("t", b"y", message_id="1")
    assert bodies(mq.peek("a")) == [b"x"]
    assert bodies(mq.peek("b")) == [b"x", b"y"]
    assert mq.peek("b")[-1].seq_number == seq


def test_a_conflict_in_every_subscription_is_raised(mq: MQ) -> None:
    for name in ("a", "b"):
        mq.subscribe("t", name)
        mq.create_queue(name, kind="subscription", dedup_window="1m")
    mq.send("t", b"x", message_id="1")
    with pytest.raises(mqlite.DedupConflict):
        mq.send("t", b"y", message_id="1")
    assert mq.send_batch("t", [OutMessage(body=b"z", message_id="1"), b"w"])[0] == 0
    assert bodies(mq.peek("a")) == [b"x", b"w"]


def test_a_topic_is_no_queue(mq: MQ) -> None:
    mq.subscribe("t", "s")
    mq.send("t", b"x")
    for call in (mq.receive, mq.stats, mq.redrive, mq.purge):
        with pytest.raises(mqlite.NotFound):
            call("t")
    with pytest.raises(mqlite.NotFound):
        mq.receive_deferred("t", [1])
    assert mq.peek("t") == []


def test_subscribing_creates_a_backing_queue_with_defaults(mq: MQ) -> None:
    mq.create_queue("plain")
    mq.subscribe("t", "s")
    assert info(mq, "s").kind == "subscription"
    assert info(mq, "s").config == info(mq, "plain").config
    assert subscriptions(mq) == [("t", "s", "")]


def test_subscriptions_are_listed_by_topic_then_name(mq: MQ) -> None:
    for topic, name in (("t2", "a"), ("t1", "z"), ("t1", "b")):
        mq.subscribe(topic, name)
    assert subscriptions(mq) == [("t1", "b", ""), ("t1", "z", ""), ("t2", "a", "")]


def test_subscribing_again_keeps_messages_settings_and_generation(mq: MQ) -> None:
    mq.subscribe("t", "s")
    mq.create_queue("s", kind="subscription", lock_duration="77s", max_delivery_count=3)
    mq.send("t", b"x")
    before = info(mq, "s")
    mq.subscribe("t", "s")
    assert info(mq, "s") == before
    assert counts(mq, "s") == {"active": 1}


def test_a_blank_filter_matches_everything_and_is_kept_as_typed(mq: MQ) -> None:
    mq.subscribe("t", "s", expr="  ")
    mq.send("t", b"x")
    assert counts(mq, "s") == {"active": 1}
    assert subscriptions(mq) == [("t", "s", "  ")]
    mq.subscribe("t", "s")
    assert subscriptions(mq) == [("t", "s", "")]


COLLISIONS: dict[str, Call] = {
    "a queue named like a topic": lambda mq: mq.create_queue("topic"),
    "a backing queue named like a topic": lambda mq: mq.create_queue("topic", kind="subscription"),
    "a subscription as a queue": lambda mq: mq.create_queue("sub"),
    "a queue as a subscription": lambda mq: mq.create_queue("queue", kind="subscription"),
    "a topic named like a queue": lambda mq: mq.subscribe("queue", "fresh"),
    "a topic named like a subscription": lambda mq: mq.subscribe("sub", "fresh"),
    "a subscription named like a queue": lambda mq: mq.subscribe("topic", "queue"),
    "a subscription named like its topic": lambda mq: mq.subscribe("fresh", "fresh"),
    "a subscription named like a live topic": lambda mq: mq.subscribe("other", "topic"),
    "a subscription of another topic": lambda mq: mq.subscribe("other", "sub"),
}


@pytest.mark.parametrize("case", COLLISIONS)
def test_queues_subscriptions_and_topics_share_one_namespace(mq: MQ, case: str) -> None:
    mq.create_queue("queue")
    mq.subscribe("topic", "sub")
    before = (mq.list_queues(), mq.list_subscriptions())
    with pytest.raises(mqlite.NameConflict):
        COLLISIONS[case](mq)
    assert (mq.list_queues(), mq.list_subscriptions()) == before


def test_upserts_of_the_same_kind_stay_open(mq: MQ) -> None:
    mq.create_queue("queue")
    mq.subscribe("topic", "sub")
    mq.create_queue("queue", lock_duration="1m")
    mq.create_queue("sub", kind="subscription", lock_duration="1m")
    mq.subscribe("topic", "sub")
    assert info(mq, "queue").config.lock_duration_ms == MINUTE
    assert info(mq, "sub").config.lock_duration_ms == MINUTE


def test_a_backing_queue_made_beforehand_is_adopted_with_its_settings(mq: MQ) -> None:
    mq.create_queue("s", kind="subscription", lock_duration="1m")
    before = info(mq, "s")
    mq.subscribe("t", "s")
    assert info(mq, "s") == before
    mq.send("t", b"x")
    assert counts(mq, "s") == {"active": 1}


def test_a_topic_can_feed_on_after_a_subscription_is_added(mq: MQ) -> None:
    mq.subscribe("t", "a")
    mq.send("t", b"1")
    mq.subscribe("t", "b")
    mq.send("t", b"2")
    assert bodies(mq.peek("a")) == [b"1", b"2"]
    assert bodies(mq.peek("b")) == [b"2"]


def test_unsubscribe_removes_the_subscription_its_queue_and_at_last_the_topic(mq: MQ) -> None:
    mq.subscribe("t", "a")
    mq.subscribe("t", "b")
    mq.unsubscribe("t", "a")
    assert subscriptions(mq) == [("t", "b", "")]
    assert [entry.name for entry in mq.list_queues()] == ["b"]
    mq.send("t", b"x")
    one(mq, "b").complete()
    mq.unsubscribe("t", "b")
    assert (mq.list_queues(), mq.list_subscriptions()) == ([], [])
    with pytest.raises(mqlite.NotFound):
        mq.send("t", b"x")
    mq.create_queue("t")
    mq.create_queue("a")


def test_unsubscribe_is_fenced_like_delete_queue(mq: MQ) -> None:
    mq.subscribe("t", "s")
    generation = info(mq, "s").generation
    mq.send("t", b"x")
    with pytest.raises(mqlite.QueueNotEmpty):
        mq.unsubscribe("t", "s", generation=generation)
    one(mq, "s").complete()
    with pytest.raises(mqlite.QueueChanged):
        mq.unsubscribe("t", "s", generation=generation + "0")
    mq.unsubscribe("t", "s", generation=generation)
    mq.subscribe("t", "s")
    with pytest.raises(mqlite.QueueChanged):
        mq.unsubscribe("t", "s", generation=generation)
    assert subscriptions(mq) == [("t", "s", "")]


@pytest.mark.parametrize(
    ("topic", "name"), [("t", "absent"), ("absent", "s"), ("t", "queue"), ("s", "t")]
)
def test_unsubscribing_what_is_not_subscribed_is_not_found(mq: MQ, topic: str, name: str) -> None:
    mq.subscribe("t", "s")
    mq.create_queue("queue")
    with pytest.raises(mqlite.NotFound):
        mq.unsubscribe(topic, name)
    with pytest.raises(mqlite.NotFound):
        mq.unsubscribe(topic, name, generation="1")
    assert subscriptions(mq) == [("t", "s", "")]

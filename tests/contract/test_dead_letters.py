"""Redrive and purge."""

from __future__ import annotations

import pytest

import mqlite
from contract.looks import DAY, HOUR, SECOND, bodies, counts, dead_letter, one, peeked, seqs
from contract.ways import World
from mqlite.api import MQ
from patience import eventually, start


def test_a_redriven_message_can_be_received_again(mq: MQ) -> None:
    mq.create_queue("q")
    seq = mq.send("q", b"a")
    one(mq, "q").reject("Reason", "description")
    moved = mq.redrive("q")
    assert (moved.count, moved.complete) == (1, True)
    again = peeked(mq, "q", seq)
    assert (again.state, again.delivery_count, again.failure_count) == ("active", 0, 0)
    assert (again.dead_letter_reason, again.dead_letter_description) == ("", "")
    message = one(mq, "q")
    assert (message.seq_number, message.delivery_count) == (seq, 1)


def test_redriving_in_place_keeps_what_was_sent_and_when(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    sent_at = world.clock.now()
    seq = mq.send("q", b"a" * 2000, subject="s", group_id="g", properties={"k": "v"}, ttl="1h")
    one(mq, "q").reject()
    world.clock.advance(SECOND)
    mq.redrive("q")
    again = peeked(mq, "q", seq)
    assert (again.enqueued_at_ms, again.visible_at_ms) == (sent_at, 0)
    assert again.expires_at_ms == sent_at + HOUR
    assert (again.body, again.subject, again.group_id) == (b"a" * 2000, "s", "g")
    assert again.properties == {"k": "v"}


def test_redriving_in_place_renews_a_deadline_that_has_passed(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", default_ttl="1m")
    seq = mq.send("q", b"a", ttl="5s")
    world.later(HOUR)
    assert counts(mq, "q") == {"dead_lettered": 1}
    mq.redrive("q")
    assert peeked(mq, "q", seq).expires_at_ms == world.clock.now() + 5 * SECOND
    assert one(mq, "q").seq_number == seq


def test_a_redriven_message_expires_by_its_new_deadline(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    seq = mq.send("q", b"a", ttl="5s")
    world.later(HOUR)
    mq.redrive("q")
    world.later(5 * SECOND - 1)
    assert counts(mq, "q") == {"active": 1}
    world.later(1)
    assert peeked(mq, "q", seq).dead_letter_reason == "TTLExpired"


def test_the_target_may_be_the_source(mq: MQ) -> None:
    mq.create_queue("q")
    sent = dead_letter(mq, "q", b"a")
    assert mq.redrive("q", target="q").count == 1
    assert seqs(mq.peek("q")) == sent


def test_redriving_into_another_queue_makes_new_messages(world: World) -> None:
    mq = world.mq
    mq.create_queue("source")
    mq.create_queue("target", default_ttl="1m")
    fields = {
        "subject": "s",
        "message_id": "m",
        "correlation_id": "c",
        "reply_to": "r",
        "content_type": "t",
        "group_id": "g",
        "properties": {"k": "v"},
        "priority": 5,
    }
    seq = mq.send("source", b"a" * 3000, ttl="1h", **fields)
    one(mq, "source").reject("Reason")
    world.clock.advance(SECOND)
    assert mq.redrive("source", target="target").count == 1
    assert counts(mq, "source") == {}
    [moved] = mq.peek("target")
    assert moved.seq_number > seq
    assert (moved.state, moved.delivery_count, moved.expires_at_ms) == ("active", 0, 0)
    assert moved.enqueued_at_ms == world.clock.now()
    assert (moved.dead_letter_reason, moved.body) == ("", b"a" * 3000)
    assert {name: getattr(moved, name) for name in fields} == fields
    assert one(mq, "target").delivery_count == 1


def test_redriving_five_messages_across_queues(mq: MQ) -> None:
    mq.create_queue("source")
    mq.create_queue("target")
    dead_letter(mq, "source", *(b"%d" % n for n in range(5)))
    assert mq.redrive("source", target="target").count == 5
    assert counts(mq, "source") == {}
    assert counts(mq, "target") == {"active": 5}
    assert bodies(mq.receive("target", max_messages=5)) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_redrive_does_not_check_the_targets_groups_or_body_limit(mq: MQ) -> None:
    mq.create_queue("source")
    mq.create_queue("target", ordering_mode="group_fifo")
    dead_letter(mq, "source", b"a", b"b")
    assert mq.redrive("source", target="target").count == 2
    assert bodies(mq.receive("target", max_messages=5)) == [b"a", b"b"]


def test_a_backing_queue_can_be_source_and_target_and_a_topic_neither(mq: MQ) -> None:
    mq.create_queue("q")
    mq.subscribe("t", "s")
    dead_letter(mq, "q", b"a")
    with pytest.raises(mqlite.NotFound):
        mq.redrive("q", target="t")
    assert mq.redrive("q", target="s").count == 1
    one(mq, "s").reject()
    assert mq.redrive("s", target="q").count == 1
    with pytest.raises(mqlite.NotFound):
        mq.redrive("t")


@pytest.mark.parametrize(
    ("source", "target"), [("nowhere", ""), ("q", "nowhere"), ("nowhere", "q")]
)
def test_redriving_from_or_to_an_unknown_queue_is_not_found(
    mq: MQ, source: str, target: str
) -> None:
    mq.create_queue("q")
    dead_letter(mq, "q", b"a")
    with pytest.raises(mqlite.NotFound):
        mq.redrive(source, target=target)
    assert counts(mq, "q") == {"dead_lettered": 1}


def test_redriving_nothing_moves_nothing(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send("q", b"a")
    moved = mq.redrive("q")
    assert (moved.count, moved.complete) == (0, True)


@pytest.mark.parametrize("move", ["redrive", "purge"])
def test_the_oldest_are_taken_up_to_the_maximum(mq: MQ, move: str) -> None:
    mq.create_queue("q")
    sent = dead_letter(mq, "q", b"a", b"b", b"c", b"d")
    assert getattr(mq, move)("q", max_messages=3).count == 3
    assert seqs(mq.peek("q", state="dead_lettered")) == sent[3:]
    assert getattr(mq, move)("q", max_messages=3).count == 1
    assert counts(mq, "q") == ({"active": 4} if move == "redrive" else {})


@pytest.mark.parametrize("move", ["redrive", "purge"])
def test_age_counts_from_the_send_and_is_strict(world: World, move: str) -> None:
    mq = world.mq
    mq.create_queue("q")
    for _ in range(3):
        mq.send("q", b"%d" % world.clock.now())
        world.clock.advance(SECOND)
    for message in mq.receive("q", max_messages=3):
        message.reject()
    assert getattr(mq, move)("q", older_than="3s").count == 0
    assert getattr(mq, move)("q", older_than="2s").count == 1
    assert seqs(mq.peek("q", state="dead_lettered")) == [2, 3]
    assert getattr(mq, move)("q", older_than="1ms").count == 2


@pytest.mark.parametrize("move", ["redrive", "purge"])
def test_an_age_below_a_millisecond_is_still_a_bound(world: World, move: str) -> None:
    mq = world.mq
    mq.create_queue("q")
    dead_letter(mq, "q", b"old")
    world.clock.advance(2)
    dead_letter(mq, "q", b"new")
    assert getattr(mq, move)("q", older_than=0.0001).count == 1
    assert bodies(mq.peek("q", state="dead_lettered")) == [b"new"]


def test_purge_deletes_dead_letters_and_nothing_else(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    dead_letter(mq, "q", b"a" * 5000, b"b")
    mq.send_batch("q", [b"locked", b"deferred", b"active"])
    one(mq, "q")
    one(mq, "q").defer()
    moved = mq.purge("q")
    assert (moved.count, moved.complete) == (2, True)
    assert counts(mq, "q") == {"active": 1, "locked": 1, "deferred": 1}
    assert world.rows("SELECT 1 FROM mqlite_payloads") == []


def test_purging_an_unknown_queue_is_not_found(mq: MQ) -> None:
    with pytest.raises(mqlite.NotFound):
        mq.purge("nowhere")


@pytest.mark.parametrize("move", ["redrive", "purge"])
def test_more_than_a_chunk_is_moved_whole(mq: MQ, move: str) -> None:
    mq.create_queue("q")
    for _ in range(5):
        mq.send_batch("q", [b""] * 256)
    while batch := mq.receive("q", max_messages=256):
        for message in batch[:-1]:
            message.reject()
        batch[-1].defer()
    assert getattr(mq, move)("q").count == 5 * 255
    after = {"deferred": 5, "active": 5 * 255} if move == "redrive" else {"deferred": 5}
    assert counts(mq, "q") == after


def test_a_rate_spreads_a_redrive_over_time(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    dead_letter(mq, "q", b"a", b"b", b"c", b"d", b"e")
    redriving = start(mq.redrive, "q", rate_per_second=2)
    for moved in (2, 4):
        eventually(lambda: counts(mq, "q").get("active") == moved)  # noqa: B023
        eventually(lambda: world.clock.waiting == 1)
        assert counts(mq, "q") == {"active": moved, "dead_lettered": 5 - moved}
        world.clock.advance(SECOND)
    assert redriving.result().count == 5
    assert counts(mq, "q") == {"active": 5}


def test_a_redrive_moves_only_what_was_dead_when_it_began(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", max_delivery_count=1)
    dead_letter(mq, "q", b"a", b"b")
    redriving = start(mq.redrive, "q", rate_per_second=1)
    eventually(lambda: world.clock.waiting == 1)
    one(mq, "q").reject()
    world.clock.advance(SECOND)
    moved = redriving.result()
    assert (moved.count, moved.complete) == (2, True)
    assert counts(mq, "q") == {"active": 1, "dead_lettered": 1}


def test_a_redrive_does_not_touch_what_is_no_longer_dead(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    dead_letter(mq, "q", b"a", b"b")
    slow = start(mq.redrive, "q", rate_per_second=1)
    eventually(lambda: world.clock.waiting == 1)
    assert mq.redrive("q").count == 1
    held = mq.receive("q", max_messages=2)
    world.clock.advance(SECOND)
    assert slow.result().count == 1
    assert [slot.ok for slot in mq.complete_batch("q", held)] == [True, True]


def test_closing_cuts_a_slow_redrive_short_with_what_was_done(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    dead_letter(mq, "q", b"a", b"b", b"c")
    slow = start(mq.redrive, "q", rate_per_second=1)
    eventually(lambda: world.clock.waiting == 1)
    closing = start(world.core.close)
    moved = slow.result()
    assert (moved.count, moved.complete) == (1, False)
    closing.result()
    assert counts(world.reopen(), "q") == {"active": 1, "dead_lettered": 2}


def test_redrive_respects_lines_of_the_target(mq: MQ) -> None:
    mq.create_queue("source")
    mq.create_queue("target", ordering_mode="strict_fifo")
    mq.send("target", b"0")
    dead_letter(mq, "source", b"1", b"2")
    mq.redrive("source", target="target")
    first = mq.receive("target", max_messages=9)
    assert bodies(first) == [b"0"]
    first[0].complete()
    assert bodies(mq.receive("target", max_messages=9)) == [b"1"]


def test_a_redriven_message_fails_again_by_the_same_rules(mq: MQ) -> None:
    mq.create_queue("q", max_delivery_count=2)
    mq.send("q", b"a")
    for _ in range(2):
        one(mq, "q").abandon()
        one(mq, "q").abandon()
        assert counts(mq, "q") == {"dead_lettered": 1}
        mq.redrive("q")
    assert counts(mq, "q") == {"active": 1}


def test_a_huge_age_means_nothing_is_that_old(mq: MQ) -> None:
    mq.create_queue("q")
    dead_letter(mq, "q", b"a")
    assert mq.purge("q", older_than=500 * 365 * DAY // 1000).count == 0

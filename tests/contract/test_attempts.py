"""A receive that is retried under the same attempt id answers its first batch."""

from __future__ import annotations

import pytest

import mqlite
from contract.looks import MINUTE, SECOND, bodies, counts, one, seqs
from contract.ways import World
from mqlite.api import MQ


def test_a_retry_answers_the_same_batch_and_another_id_claims_the_next(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send_batch("q", [b"a", b"b"])
    first = one(mq, "q", attempt_id="one")
    again = one(mq, "q", attempt_id="one")
    assert again.lease == first.lease
    assert (again.delivery_count, again.body) == (1, b"a")
    assert again.locked_until_ms == first.locked_until_ms
    assert one(mq, "q", attempt_id="two").body == b"b"
    again.complete()
    assert counts(mq, "q") == {"locked": 1}


def test_a_replay_ignores_the_retrys_size(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send_batch("q", [b"a", b"b", b"c"])
    assert len(mq.receive("q", max_messages=2, attempt_id="x")) == 2
    assert len(mq.receive("q", max_messages=1, attempt_id="x")) == 2
    assert len(mq.receive("q", max_messages=256, attempt_id="x")) == 2


def test_a_replay_asks_for_the_same_mode(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send_batch("q", [b"a", b"b"])
    one(mq, "q", attempt_id="locked")
    with pytest.raises(mqlite.InvalidArgument):
        mq.receive("q", attempt_id="locked", mode="receive_and_delete")
    one(mq, "q", attempt_id="taken", mode="receive_and_delete")
    with pytest.raises(mqlite.InvalidArgument):
        mq.receive("q", attempt_id="taken")
    assert counts(mq, "q") == {"locked": 1}


def test_a_replay_keeps_the_first_order(mq: MQ) -> None:
    mq.create_queue("q")
    for priority in (1, 3, 2):
        mq.send("q", b"%d" % priority, priority=priority)
    assert bodies(mq.receive("q", max_messages=3, attempt_id="x")) == [b"3", b"2", b"1"]
    assert bodies(mq.receive("q", max_messages=3, attempt_id="x")) == [b"3", b"2", b"1"]


def test_a_replay_leaves_out_what_is_no_longer_held(mq: MQ) -> None:
    mq.create_queue("q")
    sent = mq.send_batch("q", [b"%d" % n for n in range(5)])
    held = mq.receive("q", max_messages=5, attempt_id="x")
    held[0].complete()
    held[1].abandon(delay="1h")
    held[2].reject()
    held[3].defer()
    assert seqs(mq.receive("q", max_messages=5, attempt_id="x")) == [sent[4]]


def test_a_replay_leaves_out_what_is_locked_under_another_token(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send_batch("q", [b"a", b"b"])
    held = mq.receive("q", max_messages=2, attempt_id="x")
    held[0].abandon()
    one(mq, "q")
    assert bodies(mq.receive("q", max_messages=2, attempt_id="x")) == [b"b"]


def test_a_replay_with_nothing_left_is_empty_and_never_a_new_claim(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send_batch("q", [b"a", b"b"])
    one(mq, "q", attempt_id="x").complete()
    assert mq.receive("q", attempt_id="x") == []
    assert counts(mq, "q") == {"active": 1}


def test_a_replay_leaves_out_leases_that_have_run_out(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"a")
    one(mq, "q", attempt_id="x")
    world.clock.advance(30 * SECOND)
    assert mq.receive("q", attempt_id="x") == []
    world.maintain()
    assert mq.receive("q", attempt_id="x") == []
    assert counts(mq, "q") == {"active": 1}


def test_a_replay_shows_the_present_deadline(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"a")
    first = one(mq, "q", attempt_id="x")
    world.clock.advance(20 * SECOND)
    renewed = first.renew()
    world.clock.advance(SECOND)
    again = one(mq, "q", attempt_id="x")
    assert again.locked_until_ms == renewed.locked_until_ms
    assert again.lease_ms == 29 * SECOND


def test_an_empty_answer_is_not_recorded(mq: MQ) -> None:
    mq.create_queue("q")
    assert mq.receive("q", attempt_id="x") == []
    mq.send("q", b"a")
    assert one(mq, "q", attempt_id="x").body == b"a"


def test_an_attempt_belongs_to_its_queue(mq: MQ) -> None:
    for queue in ("a", "b"):
        mq.create_queue(queue)
        mq.send(queue, queue)
    assert one(mq, "a", attempt_id="x").text == "a"
    assert one(mq, "b", attempt_id="x").text == "b"


def test_no_attempt_id_means_no_replay(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send_batch("q", [b"a", b"b"])
    assert one(mq, "q", attempt_id="").body == b"a"
    assert one(mq, "q", attempt_id="").body == b"b"


@pytest.mark.parametrize(("lock", "lifetime"), [("30s", 5 * MINUTE), ("20m", 20 * MINUTE)])
def test_a_record_lives_for_the_longer_of_five_minutes_and_the_lock(
    world: World, lock: str, lifetime: int
) -> None:
    mq = world.mq
    mq.create_queue("q", lock_duration=lock)
    mq.send_batch("q", [b"a", b"b"])
    one(mq, "q", attempt_id="x").complete()
    world.clock.advance(lifetime - 1)
    assert mq.receive("q", attempt_id="x") == []
    world.clock.advance(1)
    assert one(mq, "q", attempt_id="x").body == b"b"
    assert one(mq, "q", attempt_id="x").body == b"b"


def test_expired_records_are_swept(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"a")
    one(mq, "q", attempt_id="x")
    world.later(5 * MINUTE - 1)
    assert len(world.rows("SELECT 1 FROM mqlite_attempts")) == 1
    world.later(1)
    assert world.rows("SELECT 1 FROM mqlite_attempts") == []


def test_receive_and_delete_replays_what_was_deleted(world: World) -> None:
    world.mq.create_queue("q")
    world.mq.send("q", b"a" * 5000, subject="s", properties={"k": "v"}, group_id="g", priority=4)
    first = one(world.mq, "q", attempt_id="x", mode="receive_and_delete")
    assert world.mq.stats("q").total == 0
    mq = world.reopen()
    again = one(mq, "q", attempt_id="x", mode="receive_and_delete")
    for field in ("seq_number", "body", "subject", "properties", "group_id", "priority"):
        assert getattr(again, field) == getattr(first, field)
    assert (again.lock_token, again.locked_until_ms, again.delivery_count) == ("", 0, 1)


def test_a_replay_after_reopening_leaves_out_reclaimed_messages(world: World) -> None:
    world.mq.create_queue("q")
    world.mq.send("q", b"a")
    one(world.mq, "q", attempt_id="x")
    mq = world.reopen()
    assert mq.receive("q", attempt_id="x") == []
    assert one(mq, "q", attempt_id="y").delivery_count == 2


def test_bodies_are_recorded_only_where_the_rows_are_gone(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send_batch("q", [b"a" * 10_000, b"b" * 10_000])
    one(mq, "q", attempt_id="locked")
    one(mq, "q", attempt_id="taken", mode="receive_and_delete")
    sizes = dict(world.rows("SELECT attempt_id, length(answer) FROM mqlite_attempts"))
    assert sizes["locked"] < 200
    assert sizes["taken"] > 10_000


def test_a_replay_is_answered_by_a_paused_queue(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send_batch("q", [b"a", b"b"])
    one(mq, "q", attempt_id="x")
    mq.pause_queue("q")
    assert one(mq, "q", attempt_id="x").body == b"a"
    assert mq.receive("q", attempt_id="y") == []


def test_attempt_ids_may_be_any_text(mq: MQ) -> None:
    mq.create_queue("q")
    for number, attempt_id in enumerate(["x" * 10_000, "日本 🐝", "nul\x00", "' OR 1=1 --"]):
        mq.send("q", b"%d" % number)
        assert (
            one(mq, "q", attempt_id=attempt_id).lease == one(mq, "q", attempt_id=attempt_id).lease
        )

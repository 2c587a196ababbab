"""Deleting queues behind a fence, and pausing them."""

from __future__ import annotations

import pytest

import mqlite
from contract.looks import MINUTE, SECOND, bodies, counts, info, one
from contract.ways import World
from mqlite.api import MQ


def test_an_empty_queue_is_deleted(mq: MQ) -> None:
    mq.create_queue("q")
    mq.delete_queue("q")
    assert mq.list_queues() == []
    with pytest.raises(mqlite.NotFound):
        mq.send("q", b"")
    with pytest.raises(mqlite.NotFound):
        mq.delete_queue("q")


@pytest.mark.parametrize("state", ["active", "locked", "deferred", "scheduled", "dead_lettered"])
def test_a_queue_that_holds_a_message_is_not_deleted(world: World, state: str) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"", at=world.at(SECOND) if state == "scheduled" else None)
    if state not in ("active", "scheduled"):
        message = one(mq, "q")
        if state == "deferred":
            message.defer()
        elif state == "dead_lettered":
            message.reject()
    with pytest.raises(mqlite.QueueNotEmpty):
        mq.delete_queue("q")
    assert counts(mq, "q") == {state: 1}


def test_deletion_is_fenced_by_the_generation(mq: MQ) -> None:
    mq.create_queue("q")
    generation = info(mq, "q").generation
    with pytest.raises(mqlite.QueueChanged):
        mq.delete_queue("q", generation="no-such")
    mq.delete_queue("q", generation=generation)
    mq.create_queue("q")
    assert info(mq, "q").generation != generation
    with pytest.raises(mqlite.QueueChanged):
        mq.delete_queue("q", generation=generation)
    assert len(mq.list_queues()) == 1


def test_a_changed_queue_is_reported_before_a_full_one(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send("q", b"")
    with pytest.raises(mqlite.QueueChanged):
        mq.delete_queue("q", generation="no-such")


def test_a_generation_is_not_reused_after_reopening(world: World) -> None:
    seen = []
    for _ in range(3):
        world.mq.create_queue("q")
        seen.append(info(world.mq, "q").generation)
        world.mq.delete_queue("q")
        world.reopen().list_queues()
        world.maintain()
    assert len(set(seen)) == 3


def test_a_backing_queue_is_removed_by_unsubscribe_only(mq: MQ) -> None:
    mq.subscribe("t", "s")
    with pytest.raises(mqlite.InvalidArgument):
        mq.delete_queue("s")
    assert len(mq.list_queues()) == 1


def test_a_new_queue_of_a_deleted_name_starts_afresh(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", dedup_window="1h", retry_initial_delay="1s")
    mq.send_batch("q", [mqlite.OutMessage(body=b"a", message_id="1"), b"b"])
    old = mq.receive("q", max_messages=2, attempt_id="x")
    mq.complete_batch("q", old)
    mq.delete_queue("q")
    mq.create_queue("q", dedup_window="1h")
    assert info(mq, "q").config.retry_initial_delay_ms == 0
    assert mq.send("q", b"other", message_id="1") > 0
    assert one(mq, "q", attempt_id="x").body == b"other"
    with pytest.raises(mqlite.LockLost):
        old[0].complete()


def test_what_a_deleted_queue_left_behind_goes_with_maintenance(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", dedup_window="10d", retain_completed="10d")
    mq.create_queue("other", dedup_window="10d")
    for n in range(3):
        mq.send("q", b"%d" % n * 3000, message_id=str(n))
        one(mq, "q", attempt_id=str(n)).complete()
    mq.delete_queue("q")
    world.maintain()
    for table in ("dedup", "attempts", "finished", "payloads"):
        assert world.rows(f"SELECT count(*) FROM mqlite_{table}") == [(0,)]
    assert world.rows("SELECT name FROM mqlite_queues") == [("other",)]


def test_a_paused_queue_gives_nothing_and_takes_everything(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", dedup_window="1m")
    mq.send_batch("q", [b"a", b"b", b"c"])
    held = mq.receive("q", max_messages=2)
    mq.pause_queue("q")
    assert info(mq, "q").paused
    assert mq.receive("q") == []
    assert mq.receive("q", mode="receive_and_delete") == []
    mq.send("q", b"d")
    held[0].renew()
    held[0].complete()
    held[1].abandon()
    assert counts(mq, "q") == {"active": 3}
    world.later(MINUTE)
    assert mq.receive("q") == []
    mq.resume_queue("q")
    assert not info(mq, "q").paused
    assert bodies(mq.receive("q", max_messages=10)) == [b"b", b"c", b"d"]


def test_pause_survives_reopening(world: World) -> None:
    world.mq.create_queue("q")
    world.mq.send("q", b"a")
    world.mq.pause_queue("q")
    mq = world.reopen()
    assert mq.receive("q") == []
    mq.resume_queue("q")
    assert one(mq, "q").body == b"a"


def test_pausing_and_resuming_twice_is_harmless(mq: MQ) -> None:
    mq.create_queue("q")
    for _ in range(2):
        mq.pause_queue("q")
    for _ in range(2):
        mq.resume_queue("q")
    assert not info(mq, "q").paused


def test_a_backing_queue_can_be_paused(mq: MQ) -> None:
    mq.subscribe("t", "s")
    mq.pause_queue("s")
    mq.send("t", b"a")
    assert mq.receive("s") == []
    mq.resume_queue("s")
    assert one(mq, "s").body == b"a"

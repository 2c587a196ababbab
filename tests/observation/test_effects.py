"""What happened to messages: counted once committed, and not for rollbacks, replays, refusals."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, ValuesView
from contextlib import closing
from pathlib import Path

import pytest

import mqlite
from contract.looks import NOBODY, one
from contract.ways import World
from mqlite import OutMessage
from mqlite.clock import ManualClock
from mqlite.engine.steps import Event
from mqlite.observation.effects import MAX_GONE, EffectMeter
from observation.looks import ended, events


def test_a_replay_adds_nothing(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send_batch("q", [b"a", b"b"])
    for _ in range(2):
        [first] = mq.receive("q", max_messages=1, attempt_id="again")
    for _ in range(2):
        first.complete()
    held = mq.receive("q", max_messages=1)
    for _ in range(3):
        held[0].reject()
    expected = {"enqueued": 2, "delivered": 2, "completed": 1, "rejected": 1, "dead_lettered": 1}
    assert events(mq.observe()) == expected


def test_what_is_refused_adds_nothing(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", ordering_mode="group_fifo")
    with pytest.raises(mqlite.GroupRequired):
        mq.send_batch("q", [OutMessage(group_id="g"), b""])
    with pytest.raises(mqlite.LockLost):
        mq.complete("q", 1, NOBODY)
    found = mq.observe()
    assert events(found) == {}
    assert ended(found)["write", "rejected", "application"] == 2


def test_a_member_that_fails_inside_a_transaction_takes_its_effects_along(
    mq: mqlite.Embedded,
) -> None:
    mq.create_queue("q", dedup_window="1h")
    mq.send("q", b"a", message_id="1")
    held = one(mq, "q")
    with mq.transaction() as tx:
        tx.send("q", b"b", message_id="2")
        with pytest.raises(mqlite.DedupConflict):
            tx.send("q", b"c", message_id="2")
        with pytest.raises(mqlite.LockLost):
            tx.complete("q", held.seq_number, NOBODY)
        tx.complete("q", *held.lease)
    assert events(mq.observe()) == {"enqueued": 2, "delivered": 1, "completed": 1}


def test_effects_of_a_joined_transaction_are_counted_with_its_commit(
    mq: mqlite.Embedded, path: Path
) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        mq.join(connection).send("q", b"a")
        connection.rollback()
        connection.execute("BEGIN IMMEDIATE")
        mq.join(connection).send("q", b"b")
        assert events(mq.observe()) == {}
        connection.commit()
        mq.core.store.look()
        assert events(mq.observe()) == {"enqueued": 1}


def test_every_event_of_a_queue_is_there_before_it_happens(mq: mqlite.Embedded) -> None:
    found = [each for each in mq.observe().messages if each.queue == "q"]
    assert {each.count for each in found} == {0}
    assert [each.event for each in found] == list(mqlite.observation.vocabulary.EVENTS)


def test_the_counts_of_a_deleted_queue_go_on_under_its_name(world: World) -> None:
    mq = world.mq
    for number in (1, 2):
        mq.create_queue("q")
        mq.send_batch("q", [b"x"] * number)
        mq.complete_batch("q", mq.receive("q", max_messages=9))
        mq.delete_queue("q")
        world.maintain()
        assert events(mq.observe())["completed"] == 2 * number - 1
    mq.create_queue("q")
    mq.send("q", b"x")
    assert events(mq.observe())["enqueued"] == 4


def test_a_queue_that_only_others_have_written_to_keeps_its_counts_too(
    mq: mqlite.Embedded, path: Path
) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        mq.join(connection).send("q", b"a")
        connection.commit()
    mq.core.store.look()
    one(mq, "q", mode="receive_and_delete")
    mq.delete_queue("q")
    assert events(mq.observe()) == {"enqueued": 1, "delivered": 1, "receive_deleted": 1}


def test_a_commit_that_is_noticed_after_the_deletion_is_counted(
    mq: mqlite.Embedded, path: Path
) -> None:
    """One of another process: nothing tells the owner to look for it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        mqlite.outbox(connection).send("q", b"a")
        connection.commit()
    one(mq, "q", mode="receive_and_delete")
    mq.delete_queue("q")
    mq.core.store.look()
    assert events(mq.observe()) == {"enqueued": 1, "delivered": 1, "receive_deleted": 1}


@pytest.mark.parametrize("used", [True, False])
def test_a_queue_that_was_made_again_never_loses_the_counts_of_its_name(
    mq: mqlite.Embedded, used: bool
) -> None:
    _used_and_deleted(mq, "q")
    mq.create_queue("q")
    if used:
        mq.send("q", b"")
    before = events(mq.observe())
    for number in range(MAX_GONE + 1):
        mq.create_queue(f"q{number}")
        _used_and_deleted(mq, f"q{number}")
    assert events(mq.observe()) == before


def test_deleted_queues_are_remembered_up_to_a_bound(mq: mqlite.Embedded) -> None:
    for number in range(MAX_GONE + 1):
        mq.create_queue(f"q{number}")
        _used_and_deleted(mq, f"q{number}")
    found = mq.observe()
    assert events(found, "q0") == {}
    assert events(found, f"q{MAX_GONE}") == {"enqueued": 1, "delivered": 1, "receive_deleted": 1}


def _used_and_deleted(mq: mqlite.Embedded, queue: str) -> None:
    mq.send(queue, b"")
    one(mq, queue, mode="receive_and_delete")
    mq.delete_queue(queue)


def test_a_look_during_a_deletion_finds_each_count_once() -> None:
    meter = EffectMeter(dict.fromkeys(range(3000), "q").get)
    looks: list[int] = []
    deleting = threading.Event()

    def look() -> None:
        deleting.set()
        while deleting.is_set():
            looks.append(sum(each.count for each in meter.snapshot({}) if each.queue == "q"))

    looker = threading.Thread(target=look)
    looker.start()
    deleting.wait()
    for number in range(3_000):
        meter.count(Event("enqueued", number))
        meter.gone(number, "q")
    deleting.clear()
    looker.join()
    assert looks == sorted(looks)


def test_a_look_that_knows_of_fewer_queues_shows_the_counts_all_the_same() -> None:
    meter = EffectMeter(lambda queue_id: None)
    meter.count(Event("enqueued", 1))
    for live in ({1: "q"}, {}):
        assert sum(each.count for each in meter.snapshot(live) if each.queue == "q") == 1


class Watched(dict[int, str]):
    """Names of queues that count how often all are gone through."""

    passes = 0

    def values(self) -> ValuesView[str]:
        self.passes += 1
        return super().values()


@pytest.mark.parametrize("made_again", [True, False])
def test_deletions_seldom_go_through_the_names_of_all_queues(made_again: bool) -> None:
    """The writer waits for it, and there may be ten thousand."""
    meter = EffectMeter(lambda queue_id: f"q{queue_id}")
    deleted = MAX_GONE + 500
    live = Watched({-number: f"q{number}" for number in range(deleted if made_again else 1)})
    meter.snapshot(live)
    live.passes = 0
    for number in range(deleted):
        meter.count(Event("enqueued", number))
        meter.gone(number, f"q{number}")
    assert 0 < live.passes <= 5


def test_counters_start_anew_when_the_queue_is_opened(
    reopen: Callable[..., mqlite.Embedded], clock: ManualClock
) -> None:
    mq = reopen()
    mq.create_queue("q")
    mq.send("q", b"x")
    mq.receive("q")
    clock.advance(5)
    mq = reopen()
    found = mq.observe()
    assert found.started_at_ms == clock.now()
    assert events(found) == {"recovered": 1}
    assert mq.stats("q").active == 1


def test_filters_that_fail_are_counted_by_message(world: World) -> None:
    mq = world.mq
    mq.subscribe("t", "ok", expr='subject == "a"')
    mq.subscribe("t", "fails", expr="int(subject) > 1")
    mq.send_batch("t", [OutMessage(subject="a"), OutMessage(subject="b")])
    with closing(sqlite3.connect(world.path)) as connection, connection:
        connection.execute("UPDATE mqlite_subscriptions SET expr = '(' WHERE name = 'fails'")
    world.close()
    mq = world.open()
    mq.send("t", b"", subject="a")
    mq.test_filter("(", b"")
    with pytest.raises(mqlite.InvalidArgument):
        mq.subscribe("t", "new", expr="(")
    failures = {each.stage: each.count for each in mq.observe().filters}
    assert failures == {"compile": 1, "evaluate": 0}


def test_a_filter_that_fails_for_a_message(mq: mqlite.Embedded) -> None:
    mq.subscribe("t", "fails", expr="int(subject) > 1")
    mq.send_batch("t", [OutMessage(subject=each) for each in ("a", "b", "7")])
    failures = {each.stage: each.count for each in mq.observe().filters}
    assert failures == {"compile": 0, "evaluate": 2}

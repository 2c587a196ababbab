"""What is counted, once it is committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

import mqlite
from contract.looks import MINUTE, NOBODY, SECOND, dead_letter, info, one
from contract.ways import World
from mqlite import OutMessage
from mqlite.engine.steps import Event

Counted = Counter[tuple[str, str]]


@pytest.fixture
def counted(world: World) -> Counted:
    """Events by queue name and kind."""
    seen: Counted = Counter()
    names: dict[int, str] = {}

    def listen(events: Sequence[Event]) -> None:
        for event in events:
            seen[names.get(event.queue_id, ""), event.event] += event.number

    for name in ("q", "other"):
        world.mq.create_queue(name)
        names[int(info(world.mq, name).generation)] = name
    world.core.store.events.append(listen)
    return seen


def test_completions_are_counted_once_for_each_message_removed(
    world: World, counted: Counted
) -> None:
    mq = world.mq
    mq.send_batch("q", [b""] * 6)
    held = mq.receive("q", max_messages=6)
    batch = [*held[:5], (999, NOBODY)]
    for _ in range(2):
        mq.complete_batch("q", batch)
    assert counted["q", "completed"] == 5
    for _ in range(2):
        held[5].complete()
    with pytest.raises(mqlite.LockLost):
        mq.complete("q", 999, NOBODY)
    assert counted["q", "completed"] == 6
    assert counted["other", "completed"] == 0


def test_completions_are_counted_for_each_queue(world: World, counted: Counted) -> None:
    for queue, number in (("q", 2), ("other", 1)):
        world.mq.send_batch(queue, [b""] * number)
        world.mq.complete_batch(queue, world.mq.receive(queue, max_messages=9))
    assert (counted["q", "completed"], counted["other", "completed"]) == (2, 1)


def test_receive_and_delete_is_counted_apart(world: World, counted: Counted) -> None:
    world.mq.send("q", b"")
    one(world.mq, "q", mode="receive_and_delete")
    assert (counted["q", "receive_deleted"], counted["q", "completed"]) == (1, 0)
    assert counted["q", "delivered"] == 1


def test_a_life_is_counted_step_by_step(world: World, counted: Counted) -> None:
    mq = world.mq
    mq.send("q", b"a")
    one(mq, "q").abandon()
    one(mq, "q").release()
    one(mq, "q").abandon(snooze=True)
    one(mq, "q").defer()
    [held] = mq.receive_deferred("q", [1])
    held.reject()
    mq.redrive("q")
    one(mq, "q")
    world.later(30 * SECOND)
    expected = {
        "enqueued": 1,
        "delivered": 6,
        "redelivered": 4,
        "abandoned": 1,
        "released": 1,
        "snoozed": 1,
        "deferred": 1,
        "rejected": 1,
        "dead_lettered": 1,
        "redriven": 1,
        "lock_expired": 1,
    }
    assert {kind: n for (queue, kind), n in counted.items() if queue == "q"} == expected


def test_duplicates_and_conflicts_are_counted_also_where_nobody_is_told(
    world: World, counted: Counted
) -> None:
    mq = world.mq
    mq.create_queue("q", dedup_window="1m")
    mq.send("q", b"a", message_id="1")
    mq.send("q", b"a", message_id="1")
    mq.send_batch("q", [OutMessage(body=b"b", message_id="1"), OutMessage(body=b"c")])
    assert (counted["q", "deduplicated"], counted["q", "dedup_conflict"]) == (1, 1)
    assert counted["q", "enqueued"] == 2


def test_what_is_refused_is_not_counted(world: World, counted: Counted) -> None:
    mq = world.mq
    mq.create_queue("q", ordering_mode="group_fifo")
    with pytest.raises(mqlite.GroupRequired):
        mq.send_batch("q", [OutMessage(group_id="g"), b""])
    assert not counted


def test_leaving_by_maintenance_and_by_hand_is_counted(world: World, counted: Counted) -> None:
    mq = world.mq
    mq.create_queue("q", dead_letter_on_expire=False)
    mq.send("q", b"", ttl="1s")
    mq.cancel("q", mq.send("q", b"", at=world.at(MINUTE)))
    dead_letter(mq, "other", b"a", b"b")
    mq.purge("other", max_messages=1)
    mq.create_queue("other", dlq_max_bytes=1, dlq_max_age="1s")
    world.later(MINUTE)
    assert (counted["q", "ttl_discarded"], counted["q", "canceled"]) == (1, 1)
    assert (counted["other", "purged"], counted["other", "retention_deleted"]) == (1, 1)

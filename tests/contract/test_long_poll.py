"""Waiting receivers: who is woken, by what, in which order."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

import pytest

import mqlite
from contract.looks import HOUR, SECOND, bodies, counts, dead_letter, one
from contract.ways import World
from mqlite import OutMessage
from mqlite.api import MQ
from mqlite.messages import Message
from patience import eventually, start

Poll = Future[list[Message]]
Act = Callable[[World, MQ], object]


def poll(world: World, queue: str = "q", **how: object) -> Poll:
    """A long poll that is asleep when this returns."""
    before = world.waiting(queue)
    polling = start(world.connect().receive, queue, **{"wait": "20s", **how})
    world.until_waiting(queue, before + 1)
    return polling


def test_a_poll_answers_at_once_what_is_there(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send("q", b"a")
    assert one(mq, "q", wait="20s").body == b"a"


def test_a_send_wakes_a_waiting_receiver(world: World) -> None:
    world.mq.create_queue("q")
    polling = poll(world)
    world.mq.send("q", b"a")
    assert bodies(polling.result()) == [b"a"]
    assert world.waiting("q") == 0


def test_a_poll_ends_empty_at_its_deadline(world: World) -> None:
    world.mq.create_queue("q")
    polling = poll(world, wait="5s")
    world.clock.advance(5 * SECOND - 1)
    assert world.waiting("q") == 1
    assert not polling.done()
    world.clock.advance(1)
    assert polling.result() == []
    assert world.waiting("q") == 0


def test_a_poll_on_an_unknown_queue_is_not_found_at_once(mq: MQ) -> None:
    with pytest.raises(mqlite.NotFound):
        mq.receive("nowhere", wait="20s")


def test_a_poll_may_take_and_delete(world: World) -> None:
    world.mq.create_queue("q")
    polling = poll(world, mode="receive_and_delete", max_messages=5)
    world.mq.send_batch("q", [b"a", b"b"])
    assert bodies(polling.result()) == [b"a", b"b"]
    assert world.mq.stats("q").total == 0


def test_a_poll_under_an_attempt_id_is_replayed(world: World) -> None:
    world.mq.create_queue("q")
    polling = poll(world, attempt_id="x")
    world.mq.send_batch("q", [b"a", b"b"])
    [message] = polling.result()
    assert one(world.mq, "q", attempt_id="x", wait="20s").lease == message.lease


def test_an_exhausted_replay_does_not_wait(world: World) -> None:
    world.mq.create_queue("q")
    world.mq.send("q", b"a")
    one(world.mq, "q", attempt_id="x").complete()
    again = start(world.mq.receive, "q", attempt_id="x", wait="20s")
    assert again.result() == []


LEAVING: dict[str, Callable[[World, Message], object]] = {
    "complete": lambda world, head: head.complete(),
    "complete_batch": lambda world, head: world.mq.complete_batch("q", [head]),
    "reject": lambda world, head: head.reject(),
    "abandon at the limit": lambda world, head: head.abandon(),
    "lock expiry at the limit": lambda world, head: world.later(10 * SECOND),
    "expiry": lambda world, head: (head.defer(), world.later(15 * SECOND)),
}


@pytest.mark.parametrize("leaving", LEAVING)
def test_a_receiver_behind_a_head_is_woken_when_the_head_leaves(world: World, leaving: str) -> None:
    mq = world.mq
    mq.create_queue("q", ordering_mode="group_fifo", max_delivery_count=1, lock_duration="10s")
    mq.send("q", b"head", group_id="g", ttl="15s")
    mq.send("q", b"follower", group_id="g")
    head = one(mq, "q")
    polling = poll(world)
    LEAVING[leaving](world, head)
    assert bodies(polling.result()) == [b"follower"]


def test_a_receiver_behind_a_cancelled_head_is_woken(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", ordering_mode="strict_fifo")
    head = mq.send("q", b"head", at=world.at(HOUR))
    mq.send("q", b"follower")
    polling = poll(world)
    mq.cancel("q", head)
    assert bodies(polling.result()) == [b"follower"]


def test_a_receiver_behind_a_head_is_woken_when_the_head_is_taken_and_deleted(
    world: World,
) -> None:
    mq = world.mq
    mq.create_queue("q", ordering_mode="strict_fifo")
    mq.send_batch("q", [b"head", b"follower"])
    held = one(mq, "q")
    first, second = poll(world, mode="receive_and_delete"), poll(world)
    held.abandon()
    assert bodies(first.result()) == [b"head"]
    assert bodies(second.result()) == [b"follower"]


READY: dict[str, tuple[Act, Act]] = {
    "abandon": (
        lambda world, mq: setattr(world, "held", one(mq, "q")),
        lambda world, mq: world.held.abandon(),
    ),
    "activation": (
        lambda world, mq: one(mq, "q").abandon(delay="5s"),
        lambda world, mq: world.later(5 * SECOND),
    ),
    "lock expiry": (
        lambda world, mq: (mq.create_queue("q", lock_duration="5s"), one(mq, "q")),
        lambda world, mq: world.later(5 * SECOND),
    ),
    "redrive": (
        lambda world, mq: one(mq, "q").reject(),
        lambda world, mq: mq.redrive("q"),
    ),
    "redrive from another queue": (
        lambda world, mq: (one(mq, "q").complete(), dead_letter(mq, "other", b"a")),
        lambda world, mq: mq.redrive("other", target="q"),
    ),
    "resume": (
        lambda world, mq: mq.pause_queue("q"),
        lambda world, mq: mq.resume_queue("q"),
    ),
}


@pytest.mark.parametrize("cause", READY)
def test_a_message_that_becomes_ready_wakes_a_receiver(world: World, cause: str) -> None:
    mq = world.mq
    before, act = READY[cause]
    mq.create_queue("q")
    mq.create_queue("other")
    mq.send("q", b"a")
    before(world, mq)
    polling = poll(world)
    act(world, mq)
    assert bodies(polling.result()) == [b"a"]


def test_reordering_wakes_receivers_of_what_it_frees(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", ordering_mode="strict_fifo")
    mq.send_batch("q", [b"1", b"2", b"3"])
    one(mq, "q")
    polls = [poll(world), poll(world)]
    mq.create_queue("q", ordering_mode="standard")
    assert sorted(bodies(p.result()) for p in polls) == [[b"2"], [b"3"]]


def test_receivers_are_served_in_the_order_they_came(world: World) -> None:
    world.mq.create_queue("q")
    polls = [poll(world) for _ in range(4)]
    for number, polling in enumerate(polls):
        world.mq.send("q", b"%d" % number)
        assert bodies(polling.result()) == [b"%d" % number]
        world.until_waiting("q", len(polls) - number - 1)


def test_as_many_are_woken_as_messages_became_ready(world: World) -> None:
    world.mq.create_queue("q")
    polls = [poll(world) for _ in range(5)]
    with world.wakes("q") as woken:
        world.mq.send_batch("q", [b"1", b"2", b"3"])
        eventually(lambda: sum(p.done() for p in polls) == 3)
        world.until_waiting("q", 2)
    assert woken[0] == 3
    served = [p for p in polls if p.done()]
    assert sorted(p.result()[0].body for p in served) == [b"1", b"2", b"3"]


def test_a_claim_that_takes_the_last_ready_message_wakes_nobody(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send_batch("q", [b"1", b"2", b"3"])
    with world.wakes("q") as woken:
        one(mq, "q")
        assert woken == [1]
        mq.receive("q", max_messages=2)
    assert woken == [1]


def test_a_batch_of_one_group_wakes_one_receiver(world: World) -> None:
    world.mq.create_queue("q")
    with world.wakes("q") as woken:
        world.mq.send_batch("q", [OutMessage(group_id="g")] * 5)
        world.mq.send_batch("q", [OutMessage(group_id="g")] * 5)
    assert woken == [1]


def test_a_send_wakes_by_the_lines_it_opens(world: World) -> None:
    world.mq.create_queue("q")
    batch = [OutMessage(group_id=group) for group in ("a", "a", "b", "", "")]
    with world.wakes("q") as woken:
        world.mq.send_batch("q", batch)
    assert woken == [4]


QUIET: dict[str, Act] = {
    "a scheduled send": lambda world, mq: mq.send("q", b"x", at=world.at(HOUR)),
    "a suppressed duplicate": lambda world, mq: mq.send("q", b"held", message_id="held"),
    "a send behind a head": lambda world, mq: mq.send("q", b"x", group_id="g"),
    "a parking abandon": lambda world, mq: world.held.abandon(delay="1h"),
    "a defer": lambda world, mq: world.held.defer(),
    "a renewal": lambda world, mq: world.held.renew(),
    "a purge": lambda world, mq: mq.purge("q"),
    "an update": lambda world, mq: mq.create_queue("q", lock_duration="1m"),
    "a send to another queue": lambda world, mq: mq.send("other", b"x"),
    "maintenance with nothing due": lambda world, mq: world.maintain(),
}


@pytest.mark.parametrize("cause", QUIET)
def test_what_makes_nothing_ready_wakes_nobody(world: World, cause: str) -> None:
    mq = world.mq
    mq.create_queue("other")
    mq.create_queue("q", dedup_window="1h")
    dead_letter(mq, "q", b"dead")
    mq.send("q", b"held", message_id="held", group_id="g")
    world.held = one(mq, "q")
    polling = poll(world)
    with world.wakes("q") as woken:
        QUIET[cause](world, mq)
    assert woken == []
    assert world.waiting("q") == 1
    assert not polling.done()


def test_an_abandoned_follower_of_a_redriven_head_wakes_nobody(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", ordering_mode="group_fifo")
    for body in (b"1", b"2"):
        mq.send("q", body, group_id="g")
    one(mq, "q").reject()
    second = one(mq, "q")
    mq.redrive("q")
    one(mq, "q")
    with world.wakes("q") as woken:
        second.abandon()
    assert woken == []
    assert mq.receive("q") == []


def test_a_claim_that_leaves_ready_messages_wakes_the_next(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.pause_queue("q")
    mq.send_batch("q", [b"1", b"2"])
    polls = [poll(world), poll(world)]
    mq.resume_queue("q")
    assert sorted(bodies(p.result()) for p in polls) == [[b"1"], [b"2"]]


def test_deleting_the_queue_ends_its_polls(world: World) -> None:
    world.mq.create_queue("q")
    polls = [poll(world), poll(world)]
    world.mq.delete_queue("q")
    for polling in polls:
        with pytest.raises(mqlite.NotFound):
            polling.result()


def test_a_poll_does_not_pass_over_to_a_new_queue_of_the_same_name(world: World) -> None:
    world.mq.create_queue("q")
    polling = poll(world)
    world.mq.delete_queue("q")
    with pytest.raises(mqlite.NotFound):
        polling.result()
    world.mq.create_queue("q")
    world.mq.send("q", b"a")
    assert counts(world.mq, "q") == {"active": 1}


def test_closing_ends_the_polls(world: World) -> None:
    world.mq.create_queue("q")
    polls = [poll(world) for _ in range(4)]
    start(world.core.close).result()
    for polling in polls:
        if world.way.startswith("http"):
            assert polling.result() == []
        else:
            with pytest.raises(mqlite.Closed):
                polling.result()


def test_many_receivers_each_get_their_own_message(world: World) -> None:
    world.mq.create_queue("q")
    polls = [poll(world) for _ in range(20)]
    for number in range(20):
        world.mq.send("q", b"%d" % number)
    received = [p.result()[0].body for p in polls]
    assert sorted(received, key=int) == [b"%d" % n for n in range(20)]


def test_a_poll_on_a_backing_queue_is_woken_by_a_publish(world: World) -> None:
    world.mq.subscribe("t", "s")
    polling = poll(world, "s")
    world.mq.send("t", b"a")
    assert bodies(polling.result()) == [b"a"]


def test_a_scheduled_message_wakes_when_it_falls_due(world: World) -> None:
    world.mq.create_queue("q")
    world.mq.send("q", b"a", at=world.at(5 * SECOND))
    polling = poll(world)
    world.later(5 * SECOND)
    assert bodies(polling.result()) == [b"a"]

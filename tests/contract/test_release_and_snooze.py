"""Two ways to give a message back that are no failure: a release, which was not even a
delivery, and a snooze, which was."""

from __future__ import annotations

import pytest

import mqlite
from contract.looks import SECOND, bodies, counts, one, peeked
from contract.ways import World
from mqlite.api import MQ
from patience import start

RETRIES = {"retry_initial_delay": "5s", "retry_multiplier": 2.0}


@pytest.fixture
def queue(mq: MQ) -> str:
    mq.create_queue("q", max_delivery_count=3)
    mq.send("q", b"a")
    return "q"


def test_a_release_is_as_if_there_had_been_no_delivery(world: World, queue: str) -> None:
    mq = world.mq
    before = mq.peek(queue)
    message = one(mq, queue)
    world.clock.advance(SECOND)
    message.release()
    assert mq.peek(queue) == before
    assert one(mq, queue).delivery_count == 1


def test_a_message_can_be_released_for_ever(mq: MQ, queue: str) -> None:
    for _ in range(10):
        one(mq, queue).release()
    assert counts(mq, queue) == {"active": 1}


def test_a_release_keeps_the_deliveries_and_failures_of_before(mq: MQ, queue: str) -> None:
    one(mq, queue).abandon()
    one(mq, queue).release()
    again = one(mq, queue)
    assert (again.delivery_count, again.failure_count) == (2, 1)


def test_a_release_does_not_ask_the_retry_policy(mq: MQ) -> None:
    mq.create_queue("q", **RETRIES)
    mq.send("q", b"a")
    one(mq, "q").release()
    assert counts(mq, "q") == {"active": 1}


def test_what_was_deferred_is_active_after_a_release(mq: MQ, queue: str) -> None:
    message = one(mq, queue)
    message.defer()
    [fetched] = mq.receive_deferred(queue, [message.seq_number])
    fetched.release()
    assert counts(mq, queue) == {"active": 1}
    assert one(mq, queue).delivery_count == 2


@pytest.mark.parametrize("claim_order", ["sequence", "due_time"])
def test_a_released_message_keeps_its_place(world: World, claim_order: str) -> None:
    mq = world.mq
    mq.create_queue("q", claim_order=claim_order)
    mq.send("q", b"first")
    world.clock.advance(SECOND)
    mq.send("q", b"second")
    message = one(mq, "q")
    world.clock.advance(SECOND)
    message.release()
    assert bodies(mq.receive("q", max_messages=2)) == [b"first", b"second"]


@pytest.mark.parametrize("mode", ["group_fifo", "strict_fifo"])
def test_a_released_head_comes_first_again(mq: MQ, mode: str) -> None:
    mq.create_queue("q", ordering_mode=mode)
    for body in (b"1", b"2"):
        mq.send("q", body, group_id="g")
    one(mq, "q").release()
    assert one(mq, "q").body == b"1"
    assert mq.receive("q") == []


def test_a_release_wakes_one_receiver(world: World, queue: str) -> None:
    message = one(world.mq, queue)
    waiting = start(world.connect().receive, queue, wait="20s")
    world.until_waiting(queue)
    with world.wakes(queue) as woken:
        message.release()
    assert woken == [1]
    assert bodies(waiting.result()) == [b"a"]


def test_a_release_behind_its_line_wakes_nobody(mq: MQ, world: World) -> None:
    """A redriven message went to the front of the line while its follower was held."""
    mq.create_queue("q", ordering_mode="strict_fifo")
    mq.send_batch("q", [b"1", b"2"])
    one(mq, "q").reject()
    follower = one(mq, "q")
    mq.redrive("q")
    with world.wakes("q") as woken:
        follower.release()
    assert woken == []
    assert one(mq, "q").body == b"1"


def test_the_token_of_a_released_message_settles_nothing(mq: MQ, queue: str) -> None:
    message = one(mq, queue)
    message.release()
    again = one(mq, queue)
    for settle in (message.complete, message.abandon, message.renew):
        with pytest.raises(mqlite.LockLost):
            settle()
    message.release()
    assert peeked(mq, queue, again.seq_number).state == "locked"


def test_a_snooze_parks_like_an_abandon_and_counts_no_failure(world: World, queue: str) -> None:
    mq = world.mq
    message = one(mq, queue)
    message.abandon(delay="10s", snooze=True)
    parked = peeked(mq, queue, message.seq_number)
    assert (parked.state, parked.failure_count) == ("scheduled", 0)
    assert parked.visible_at_ms == world.clock.now() + 10 * SECOND
    world.later(10 * SECOND)
    again = one(mq, queue)
    assert (again.delivery_count, again.failure_count) == (2, 0)


def test_a_snooze_without_a_delay_follows_the_retry_policy(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", max_counts="failures", **RETRIES)
    mq.send("q", b"a")
    for _ in range(2):
        one(mq, "q").abandon(snooze=True)
        assert counts(mq, "q") == {"scheduled": 1}
        world.later(5 * SECOND)
    one(mq, "q").abandon()
    world.later(5 * SECOND)
    one(mq, "q").abandon(snooze=True)
    world.later(5 * SECOND)
    assert counts(mq, "q") == {"scheduled": 1}


def test_a_snooze_holds_the_line(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", ordering_mode="strict_fifo")
    mq.send_batch("q", [b"1", b"2"])
    one(mq, "q").abandon(delay="1s", snooze=True)
    assert mq.receive("q") == []
    world.later(SECOND)
    assert one(mq, "q").body == b"1"


def test_where_failures_count_a_message_can_be_snoozed_for_ever(mq: MQ) -> None:
    mq.create_queue("q", max_counts="failures", max_delivery_count=2)
    mq.send("q", b"a")
    one(mq, "q").abandon()
    for _ in range(5):
        one(mq, "q").abandon(snooze=True)
    one(mq, "q").abandon()
    [dead] = mq.peek("q")
    assert (dead.state, dead.failure_count, dead.delivery_count) == ("dead_lettered", 2, 7)


def test_a_snooze_is_not_compared_with_a_maximum_that_was_lowered(mq: MQ) -> None:
    mq.create_queue("q", max_counts="failures", max_delivery_count=5)
    mq.send("q", b"a")
    for _ in range(2):
        one(mq, "q").abandon()
    mq.create_queue("q", max_delivery_count=1)
    one(mq, "q").abandon(snooze=True)
    assert counts(mq, "q") == {"active": 1}


def test_where_deliveries_count_a_snooze_can_be_one_too_many(mq: MQ, queue: str) -> None:
    for _ in range(2):
        one(mq, queue).abandon(snooze=True)
    one(mq, queue).abandon(delay="1h", snooze=True)
    [dead] = mq.peek(queue)
    assert (dead.state, dead.dead_letter_reason) == ("dead_lettered", "MaxDeliveryCountExceeded")
    assert (dead.delivery_count, dead.failure_count) == (3, 0)


@pytest.mark.parametrize("first", [False, True])
def test_a_snooze_and_an_abandon_do_not_replay_each_other(mq: MQ, queue: str, first: bool) -> None:
    message = one(mq, queue)
    message.abandon(delay="1s", snooze=first)
    message.abandon(delay="1s", snooze=first)
    with pytest.raises(mqlite.LockLost):
        message.abandon(delay="1s", snooze=not first)


def test_a_snooze_is_true_or_false(mq: MQ, queue: str) -> None:
    with pytest.raises(mqlite.InvalidArgument, match="snooze"):
        one(mq, queue).abandon(snooze="yes")  # type: ignore[arg-type]

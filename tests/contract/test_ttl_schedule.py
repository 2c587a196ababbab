"""Time to live, scheduling, and cancelling."""

from __future__ import annotations

from datetime import datetime

import pytest

import mqlite
from contract.looks import DAY, HOUR, MINUTE, SECOND, bodies, counts, one, peeked, seqs
from contract.ways import World
from mqlite import OutMessage
from mqlite.api import MQ


def test_a_scheduled_message_is_invisible_before_its_time_and_delivered_after(
    world: World,
) -> None:
    mq = world.mq
    mq.create_queue("q")
    sent_at = world.clock.now()
    seq = mq.send("q", b"a", at=world.at(10 * SECOND))
    scheduled = peeked(mq, "q", seq)
    assert (scheduled.state, scheduled.visible_at_ms) == ("scheduled", sent_at + 10 * SECOND)
    assert scheduled.enqueued_at_ms == sent_at
    world.later(10 * SECOND - 1)
    assert mq.receive("q") == []
    world.later(1)
    message = one(mq, "q")
    assert (message.seq_number, message.delivery_count) == (seq, 1)


def test_only_the_scheduler_makes_a_message_visible(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"a", at=world.at(SECOND))
    world.clock.advance(HOUR)
    assert mq.receive("q") == []
    assert counts(mq, "q") == {"scheduled": 1}


@pytest.mark.parametrize("ms", [0, -1, -DAY])
def test_a_time_that_is_not_in_the_future_is_refused(world: World, ms: int) -> None:
    mq = world.mq
    mq.create_queue("q")
    with pytest.raises(mqlite.InvalidArgument):
        mq.send("q", b"a", at=world.at(ms))
    with pytest.raises(mqlite.InvalidArgument):
        mq.send_batch("q", [b"a", b"b"], at=world.at(ms))
    assert counts(mq, "q") == {}


def test_a_time_before_1970_is_refused_before_anything_else(world: World) -> None:
    with pytest.raises(mqlite.InvalidArgument):
        world.mq.send_batch("nowhere", [], at=datetime.fromisoformat("1969-12-31T23:59:59Z"))


def test_a_millisecond_from_now_is_the_future(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"a", at=world.at(1))
    assert counts(mq, "q") == {"scheduled": 1}


def test_a_scheduled_batch_is_sent_whole_or_not_at_all(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", ordering_mode="group_fifo")
    good = [OutMessage(body=b"1", group_id="g"), OutMessage(body=b"2", group_id="g")]
    with pytest.raises(mqlite.GroupRequired):
        mq.send_batch("q", [*good, b"3"], at=world.at(SECOND))
    assert counts(mq, "q") == {}
    mq.send_batch("q", good, at=world.at(SECOND))
    assert counts(mq, "q") == {"scheduled": 2}


@pytest.mark.parametrize("way", ["sync", "async"])  # a client counts from its own clock
def test_a_duration_schedules_from_now(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    seq = mq.send("q", b"a", at="1m30s")
    assert peeked(mq, "q", seq).visible_at_ms == world.clock.now() + 90 * SECOND


def test_messages_due_at_once_come_by_number(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    later = mq.send("q", b"later", at=world.at(2 * SECOND))
    sooner = mq.send("q", b"sooner", at=world.at(SECOND))
    world.later(2 * SECOND)
    assert seqs(mq.receive("q", max_messages=10)) == [later, sooner]


def test_a_cancelled_message_is_never_delivered(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    seq = mq.send("q", b"a", at=world.at(SECOND))
    mq.cancel("q", seq)
    world.later(MINUTE)
    assert mq.receive("q") == []
    assert mq.stats("q").total == 0


def test_cancel_is_not_idempotent(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    seq = mq.send("q", b"a", at=world.at(SECOND))
    mq.cancel("q", seq)
    with pytest.raises(mqlite.NotFound):
        mq.cancel("q", seq)


def test_a_stale_cancel_leaves_a_later_message_alone(world: World) -> None:
    world.mq.create_queue("q")
    seq = world.mq.send("q", b"a", at=world.at(SECOND))
    world.mq.cancel("q", seq)
    mq = world.reopen()
    later = mq.send("q", b"b", at=world.at(SECOND))
    assert later > seq
    with pytest.raises(mqlite.NotFound):
        mq.cancel("q", seq)
    assert counts(mq, "q") == {"scheduled": 1}


@pytest.mark.parametrize("case", ["active", "parked", "locked", "deferred", "dead", "unknown"])
def test_only_a_scheduled_message_never_delivered_can_be_cancelled(world: World, case: str) -> None:
    mq = world.mq
    mq.create_queue("q")
    seq = mq.send("q", b"a")
    if case == "unknown":
        seq += 1
    elif case != "active":
        message = one(mq, "q")
        if case == "parked":
            message.abandon(delay="10s")
        elif case == "deferred":
            message.defer()
        elif case == "dead":
            message.reject()
    before = mq.peek("q")
    with pytest.raises(mqlite.NotFound):
        mq.cancel("q", seq)
    assert mq.peek("q") == before


@pytest.mark.parametrize("seq", [0, -1, 2**63 - 1])
def test_cancelling_a_number_that_cannot_be_is_not_found(mq: MQ, seq: int) -> None:
    mq.create_queue("q")
    with pytest.raises(mqlite.NotFound):
        mq.cancel("q", seq)


def test_cancel_is_fenced_by_the_queue(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.create_queue("other")
    seq = mq.send("q", b"a", at=world.at(SECOND))
    for queue in ("other", "nowhere"):
        with pytest.raises(mqlite.NotFound):
            mq.cancel(queue, seq)
    assert counts(mq, "q") == {"scheduled": 1}


def test_an_expired_message_is_dead_lettered_and_not_delivered(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    seq = mq.send("q", b"a", ttl="5s")
    world.clock.advance(5 * SECOND)
    assert mq.receive("q") == []
    world.maintain()
    dead = peeked(mq, "q", seq)
    assert (dead.state, dead.dead_letter_reason) == ("dead_lettered", "TTLExpired")


def test_a_message_lives_until_a_millisecond_before_it_expires(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"a", ttl="5s")
    world.later(5 * SECOND - 1)
    assert one(mq, "q").body == b"a"


def test_a_queue_may_discard_what_expires(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", dead_letter_on_expire=False)
    mq.send("q", b"a" * 5000, ttl="5s")
    mq.send("q", b"b")
    world.later(5 * SECOND)
    assert bodies(mq.peek("q")) == [b"b"]
    assert world.rows("SELECT 1 FROM mqlite_payloads") == []


@pytest.mark.parametrize("discard", [False, True], ids=["dead-letter", "discard"])
def test_expiry_takes_a_message_in_every_live_state(world: World, discard: bool) -> None:
    mq = world.mq
    mq.create_queue("q", dead_letter_on_expire=not discard)
    mq.send_batch("q", [b"locked", b"deferred", b"parked"], ttl="5s")
    locked, deferred, parked = mq.receive("q", max_messages=3)
    deferred.defer()
    parked.abandon(delay="1h")
    mq.send("q", b"active", ttl="5s")
    assert counts(mq, "q") == {"active": 1, "locked": 1, "deferred": 1, "scheduled": 1}
    world.later(5 * SECOND)
    assert counts(mq, "q") == ({} if discard else {"dead_lettered": 4})
    with pytest.raises(mqlite.LockLost):
        locked.complete()


def test_the_holder_of_an_expired_message_may_settle_until_the_sweep(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"a", ttl="5s")
    message = one(mq, "q")
    world.clock.advance(10 * SECOND)
    message.renew()
    message.complete()
    assert counts(mq, "q") == {}


def test_an_expired_message_is_not_delivered_again_after_an_abandon(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    seq = mq.send("q", b"a", ttl="5s")
    message = one(mq, "q")
    world.clock.advance(10 * SECOND)
    message.abandon()
    assert mq.receive("q") == []
    world.maintain()
    assert peeked(mq, "q", seq).dead_letter_reason == "TTLExpired"


def test_time_to_live_counts_from_when_a_message_becomes_visible(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    now = world.clock.now()
    immediate = mq.send("q", b"a", ttl="5s")
    scheduled = mq.send("q", b"b", ttl="5s", at=world.at(MINUTE))
    assert peeked(mq, "q", immediate).expires_at_ms == now + 5 * SECOND
    assert peeked(mq, "q", scheduled).expires_at_ms == now + MINUTE + 5 * SECOND


def test_a_message_that_expires_while_still_scheduled_is_not_revived(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    seq = mq.send("q", b"a", ttl="5s", at=world.at(10 * SECOND))
    world.later(20 * SECOND)
    assert peeked(mq, "q", seq).dead_letter_reason == "TTLExpired"
    assert mq.receive("q") == []


def test_the_queues_default_is_a_default_and_a_cap(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", default_ttl="1m")
    now = world.clock.now()
    long = mq.send("q", b"a", ttl="1h")
    short = mq.send("q", b"b", ttl="10s")
    absent = mq.send("q", b"c")
    ends = [peeked(mq, "q", seq).expires_at_ms - now for seq in (long, short, absent)]
    assert ends == [MINUTE, 10 * SECOND, MINUTE]


def test_without_a_default_the_messages_own_time_to_live_holds(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    own = mq.send("q", b"a", ttl="365d")
    none = mq.send("q", b"b")
    assert peeked(mq, "q", own).expires_at_ms == world.clock.now() + 365 * DAY
    assert peeked(mq, "q", none).expires_at_ms == 0
    world.later(364 * DAY)
    assert counts(mq, "q") == {"active": 2}


def test_the_time_to_live_of_a_call_applies_to_every_message_of_it(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send_batch("q", [b"a", b"b"], ttl="5s")
    ends = {message.expires_at_ms for message in mq.peek("q")}
    assert ends == {world.clock.now() + 5 * SECOND}


def test_expiry_stays_as_it_was_at_the_send(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", default_ttl="1h")
    seq = mq.send("q", b"a")
    ends = peeked(mq, "q", seq).expires_at_ms
    mq.create_queue("q", default_ttl="1m")
    world.clock.advance(SECOND)
    message = one(mq, "q")
    message.renew()
    message.abandon(delay="10s")
    world.later(10 * SECOND)
    one(mq, "q").defer()
    assert peeked(mq, "q", seq).expires_at_ms == ends


def test_expiry_promotes_the_followers_of_a_head(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", ordering_mode="group_fifo")
    mq.send("q", b"1", group_id="g", ttl="5s")
    mq.send("q", b"2", group_id="g")
    one(mq, "q").defer()
    assert mq.receive("q") == []
    world.later(5 * SECOND)
    assert one(mq, "q").body == b"2"


def test_dead_letters_do_not_expire(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", dead_letter_on_expire=False)
    mq.send("q", b"a", ttl="5s")
    one(mq, "q").reject()
    world.later(HOUR)
    assert counts(mq, "q") == {"dead_lettered": 1}


def test_a_claim_does_not_deliver_what_expires_at_that_moment(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"a", ttl="5s")
    world.clock.advance(5 * SECOND)
    assert mq.receive("q", max_messages=10) == []
    assert mq.receive("q", mode="receive_and_delete") == []


def test_many_expire_in_one_pass(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    for _ in range(5):
        mq.send_batch("q", [b""] * 256, ttl="5s")
    world.later(5 * SECOND)
    assert counts(mq, "q") == {"dead_lettered": 5 * 256}


def test_many_fall_due_in_one_pass(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    for _ in range(5):
        mq.send_batch("q", [b""] * 256, at=world.at(5 * SECOND))
    world.later(5 * SECOND)
    assert counts(mq, "q") == {"active": 5 * 256}

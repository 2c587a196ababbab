"""Leases: who may settle until when, renewal, and the sweep."""

from __future__ import annotations

import pytest

import mqlite
from contract.looks import HOUR, MINUTE, NOBODY, SECOND, counts, one, peeked, seqs
from contract.ways import World
from mqlite.api import MQ

VERBS = ["complete", "abandon", "release", "reject", "defer", "renew"]


@pytest.mark.parametrize("verb", VERBS)
def test_a_lease_is_over_at_its_deadline_exactly(world: World, verb: str) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"a")
    message = one(mq, "q")
    world.clock.advance(30 * SECOND)
    with pytest.raises(mqlite.LockLost):
        getattr(message, verb)()
    assert counts(mq, "q") == {"locked": 1}
    assert peeked(mq, "q", 1).locked_until_ms == message.locked_until_ms


@pytest.mark.parametrize("verb", VERBS)
def test_a_lease_holds_a_millisecond_before_its_deadline(world: World, verb: str) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"a")
    message = one(mq, "q")
    world.clock.advance(30 * SECOND - 1)
    getattr(message, verb)()


def test_an_expired_lease_settles_nothing_in_a_batch(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"a")
    message = one(mq, "q")
    world.clock.advance(30 * SECOND)
    assert [slot.ok for slot in mq.complete_batch("q", [message])] == [False]
    assert [slot.ok for slot in mq.renew_batch("q", [message])] == [False]
    assert counts(mq, "q") == {"locked": 1}


def test_the_sweep_gives_an_expired_lock_back_with_its_delivery_counted(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    seq = mq.send("q", b"a")
    one(mq, "q")
    world.later(30 * SECOND)
    message = one(mq, "q")
    assert (message.seq_number, message.delivery_count) == (seq, 2)


def test_the_sweep_takes_a_lock_at_its_deadline_and_not_before(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"a")
    one(mq, "q")
    world.later(30 * SECOND - 1)
    assert counts(mq, "q") == {"locked": 1}
    world.later(1)
    assert counts(mq, "q") == {"active": 1}


def test_a_claim_alone_never_takes_an_expired_lock(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"a")
    one(mq, "q")
    world.clock.advance(HOUR)
    assert mq.receive("q") == []
    assert mq.receive("q", mode="receive_and_delete") == []
    assert counts(mq, "q") == {"locked": 1}


def test_a_lock_that_expires_on_the_last_delivery_dead_letters(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", max_delivery_count=1)
    seq = mq.send("q", b"a")
    one(mq, "q")
    world.clock.advance(30 * SECOND)
    assert mq.receive("q") == []
    assert counts(mq, "q") == {"locked": 1}
    world.maintain()
    dead = peeked(mq, "q", seq)
    assert (dead.state, dead.dead_letter_reason) == ("dead_lettered", "MaxDeliveryCountExceeded")


def test_the_sweep_keeps_visibility_and_clears_the_lock(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    seq = mq.send("q", b"a")
    sent_at = world.clock.now()
    one(mq, "q")
    world.later(30 * SECOND)
    again = peeked(mq, "q", seq)
    assert (again.visible_at_ms, again.locked_until_ms) == (sent_at, 0)


def test_renew_counts_from_now_and_reports_the_new_deadline(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    seq = mq.send("q", b"a")
    message = one(mq, "q")
    world.clock.advance(20 * SECOND)
    renewed = message.renew()
    assert renewed.ok
    assert renewed.seq_number == seq
    assert renewed.locked_until_ms == world.clock.now() + 30 * SECOND
    assert renewed.lease_ms == 30 * SECOND
    assert peeked(mq, "q", seq).locked_until_ms == renewed.locked_until_ms
    world.clock.advance(29 * SECOND)
    message.complete()


def test_renew_with_a_wrong_token_is_lock_lost_and_moves_nothing(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    seq = mq.send("q", b"a")
    message = one(mq, "q")
    world.clock.advance(SECOND)
    with pytest.raises(mqlite.LockLost):
        mq.renew("q", seq, NOBODY)
    assert peeked(mq, "q", seq).locked_until_ms == message.locked_until_ms


def test_renew_never_shortens_a_lease(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", lock_duration="10m")
    mq.send("q", b"a")
    message = one(mq, "q")
    mq.create_queue("q", lock_duration="1s")
    assert message.renew().locked_until_ms == message.locked_until_ms
    world.clock.set(world.clock.now() - HOUR)
    assert message.renew().locked_until_ms == message.locked_until_ms
    [slot] = mq.renew_batch("q", [message])
    assert (slot.ok, slot.locked_until_ms) == (True, message.locked_until_ms)
    assert slot.lease_ms == 10 * MINUTE + HOUR


def test_renew_never_revives_an_expired_lease(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"a")
    message = one(mq, "q")
    world.clock.advance(MINUTE)
    with pytest.raises(mqlite.LockLost):
        message.renew()
    world.maintain()
    with pytest.raises(mqlite.LockLost):
        message.renew()
    assert counts(mq, "q") == {"active": 1}


def test_renew_is_never_replayed(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send("q", b"a")
    message = one(mq, "q")
    message.renew()
    message.complete()
    with pytest.raises(mqlite.LockLost):
        message.renew()
    assert [slot.ok for slot in mq.renew_batch("q", [message])] == [False]


def test_renew_on_an_unknown_queue_is_not_found(mq: MQ) -> None:
    with pytest.raises(mqlite.NotFound):
        mq.renew("nowhere", 1, NOBODY)


def test_renewals_go_on_for_as_long_as_they_come_in_time(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", lock_duration="10s")
    mq.send("q", b"a")
    message = one(mq, "q")
    for _ in range(20):
        world.later(9 * SECOND)
        message.renew()
    message.complete()
    assert mq.stats("q").total == 0


def test_the_old_token_is_lost_after_redelivery_and_the_new_one_works(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"a")
    old = one(mq, "q")
    world.later(30 * SECOND)
    new = one(mq, "q")
    assert new.lock_token != old.lock_token
    for settle in (old.complete, old.abandon, old.reject, old.defer):
        with pytest.raises(mqlite.LockLost):
            settle()
    assert counts(mq, "q") == {"locked": 1}
    new.complete()
    assert counts(mq, "q") == {}


@pytest.mark.parametrize("verb", ["complete", "abandon", "release", "reject", "defer"])
def test_settling_on_an_unknown_queue_is_lock_lost(mq: MQ, verb: str) -> None:
    with pytest.raises(mqlite.LockLost):
        getattr(mq, verb)("nowhere", 1, NOBODY)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("seq", [0, -1, 999, 2**63 - 1, -(2**63)])
def test_settling_a_number_that_is_not_there_is_lock_lost(mq: MQ, verb: str, seq: int) -> None:
    mq.create_queue("q")
    with pytest.raises(mqlite.LockLost):
        getattr(mq, verb)("q", seq, NOBODY)


def test_a_token_is_good_for_its_own_queue_only(mq: MQ) -> None:
    mq.create_queue("q")
    mq.create_queue("other")
    mq.send("q", b"a")
    message = one(mq, "q")
    with pytest.raises(mqlite.LockLost):
        mq.complete("other", *message.lease)
    assert counts(mq, "q") == {"locked": 1}


def test_the_sweep_reclaims_every_expired_lock_of_every_queue(world: World) -> None:
    mq = world.mq
    for queue in ("a", "b"):
        mq.create_queue(queue)
        for _ in range(5):
            mq.send_batch(queue, [b""] * 256)
        while mq.receive(queue, max_messages=256):
            pass
    world.later(30 * SECOND)
    assert counts(mq, "a") == counts(mq, "b") == {"active": 5 * 256}


def test_locks_left_behind_are_reclaimed_on_open_whatever_their_lease(world: World) -> None:
    world.mq.create_queue("q", lock_duration="1h", max_delivery_count=2)
    first, second = world.mq.send_batch("q", [b"last", b"first"])
    sent_at = world.clock.now()
    one(world.mq, "q").abandon()
    held = world.mq.receive("q", max_messages=2)
    assert seqs(held) == [first, second]
    mq = world.reopen()
    dead = peeked(mq, "q", first)
    assert (dead.state, dead.dead_letter_reason) == ("dead_lettered", "MaxDeliveryCountExceeded")
    back = peeked(mq, "q", second)
    assert (back.state, back.delivery_count) == ("active", 1)
    assert (back.visible_at_ms, back.locked_until_ms) == (sent_at, 0)
    with pytest.raises(mqlite.LockLost):
        mq.complete("q", *held[1].lease)
    assert one(mq, "q").delivery_count == 2


def test_all_locks_are_reclaimed_on_open_however_many(world: World) -> None:
    world.mq.create_queue("q", lock_duration="1h")
    for _ in range(5):
        world.mq.send_batch("q", [b""] * 256)
    while world.mq.receive("q", max_messages=256):
        pass
    assert counts(world.mq, "q") == {"locked": 5 * 256}
    assert counts(world.reopen(), "q") == {"active": 5 * 256}


def test_the_head_of_a_line_that_was_locked_is_received_first_after_reopening(
    world: World,
) -> None:
    world.mq.create_queue("q", ordering_mode="group_fifo")
    for body in (b"1", b"2"):
        world.mq.send("q", body, group_id="g")
    one(world.mq, "q")
    message = one(world.reopen(), "q")
    assert (message.body, message.delivery_count) == (b"1", 2)

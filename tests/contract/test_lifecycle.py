"""A message's life from send to settlement."""

from __future__ import annotations

import pytest

import mqlite
from contract.looks import NOBODY, SECOND, bodies, counts, one, peeked, seqs
from contract.ways import World
from mqlite.api import MQ


def test_a_message_is_sent_received_and_completed(mq: MQ) -> None:
    mq.create_queue("q")
    assert mq.send("q", "hello") == 1
    message = one(mq, "q")
    assert (message.seq_number, message.delivery_count, message.text) == (1, 1, "hello")
    assert message.queue == "q"
    assert mq.receive("q") == []
    message.complete()
    assert mq.stats("q").total == 0


def test_a_claim_locks_for_the_queues_lock_duration_under_a_fresh_token(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", lock_duration="45s")
    mq.send_batch("q", [b"a", b"b"])
    first, second = mq.receive("q", max_messages=2)
    assert first.locked_until_ms == world.clock.now() + 45 * SECOND
    assert first.lease_ms == 45 * SECOND
    assert first.lock_token != second.lock_token
    for message in (first, second):
        assert len(message.lock_token) == 32
        assert set(message.lock_token) <= set("0123456789abcdef")


def test_a_received_message_carries_no_state_visibility_or_expiry(mq: MQ) -> None:
    mq.create_queue("q", default_ttl="1h")
    mq.send("q", "a")
    message = one(mq, "q")
    assert (message.state, message.visible_at_ms, message.expires_at_ms) == ("", 0, 0)


def test_a_wrong_token_is_lock_lost_and_the_right_one_settles(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send("q", "a")
    message = one(mq, "q")
    with pytest.raises(mqlite.LockLost):
        mq.complete("q", message.seq_number, NOBODY)
    assert counts(mq, "q") == {"locked": 1}
    message.complete()
    assert counts(mq, "q") == {}


@pytest.mark.parametrize("verb", ["complete", "abandon", "reject", "defer", "renew"])
def test_a_blank_token_is_lock_lost(mq: MQ, verb: str) -> None:
    mq.create_queue("q")
    seq = mq.send("q", "a")
    one(mq, "q")
    with pytest.raises(mqlite.LockLost):
        getattr(mq, verb)("q", seq, "")


def test_a_message_abandoned_to_the_limit_is_dead_lettered(mq: MQ) -> None:
    mq.create_queue("q", max_delivery_count=2)
    seq = mq.send("q", "a")
    one(mq, "q").abandon()
    message = one(mq, "q")
    assert message.delivery_count == 2
    message.abandon()
    assert mq.receive("q") == []
    dead = peeked(mq, "q", seq)
    assert (dead.state, dead.dead_letter_reason) == ("dead_lettered", "MaxDeliveryCountExceeded")
    assert dead.dead_letter_description == ""


def test_an_abandoned_message_is_there_again_at_once(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    seq = mq.send("q", "a")
    message = one(mq, "q")
    world.clock.advance(SECOND)
    message.abandon()
    again = peeked(mq, "q", seq)
    assert (again.state, again.locked_until_ms) == ("active", 0)
    assert again.visible_at_ms == world.clock.now()
    assert one(mq, "q").delivery_count == 2


def test_an_abandoned_message_with_a_delay_is_parked_until_then(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    seq = mq.send("q", "a")
    one(mq, "q").abandon(delay="5s")
    parked = peeked(mq, "q", seq)
    assert (parked.state, parked.visible_at_ms) == ("scheduled", world.clock.now() + 5 * SECOND)
    world.later(5 * SECOND - 1)
    assert mq.receive("q") == []
    world.later(1)
    assert one(mq, "q").delivery_count == 2


def test_the_limit_beats_the_delay_and_leaves_visibility_alone(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", max_delivery_count=1)
    seq = mq.send("q", "a")
    sent_at = world.clock.now()
    message = one(mq, "q")
    world.clock.advance(SECOND)
    message.abandon(delay="5s")
    dead = peeked(mq, "q", seq)
    assert (dead.state, dead.visible_at_ms) == ("dead_lettered", sent_at)


def test_the_limit_in_force_is_the_one_at_settlement(mq: MQ) -> None:
    mq.create_queue("q", max_delivery_count=5)
    mq.send("q", "a")
    message = one(mq, "q")
    mq.create_queue("q", max_delivery_count=1)
    message.abandon()
    assert counts(mq, "q") == {"dead_lettered": 1}


def test_reject_dead_letters_with_a_default_reason(mq: MQ) -> None:
    mq.create_queue("q")
    first, second = mq.send_batch("q", [b"a", b"b"])
    one(mq, "q").reject()
    one(mq, "q").reject("Poison", "could not be parsed")
    dead = peeked(mq, "q", first)
    assert (dead.dead_letter_reason, dead.dead_letter_description) == ("AppRequested", "")
    dead = peeked(mq, "q", second)
    assert dead.dead_letter_reason == "Poison"
    assert dead.dead_letter_description == "could not be parsed"
    assert counts(mq, "q") == {"dead_lettered": 2}


def test_reject_does_not_look_at_the_delivery_count(mq: MQ) -> None:
    mq.create_queue("q", max_delivery_count=10)
    mq.send("q", "a")
    one(mq, "q").reject()
    assert counts(mq, "q") == {"dead_lettered": 1}


def test_a_deferred_message_is_hidden_and_comes_back_by_number(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    seq = mq.send("q", "a")
    sent_at = world.clock.now()
    world.clock.advance(SECOND)
    one(mq, "q").defer()
    assert mq.receive("q") == []
    deferred = peeked(mq, "q", seq)
    assert (deferred.state, deferred.visible_at_ms) == ("deferred", sent_at)
    [message] = mq.receive_deferred("q", [seq])
    assert (message.delivery_count, message.text) == (2, "a")
    assert message.locked_until_ms == world.clock.now() + 30 * SECOND
    assert message.lease_ms == 30 * SECOND
    message.complete()
    assert mq.stats("q").total == 0


def test_receive_deferred_skips_what_is_not_deferred_and_keeps_the_order_asked_for(
    mq: MQ,
) -> None:
    mq.create_queue("q")
    mq.create_queue("other")
    elsewhere = mq.send("other", "x")
    one(mq, "other").defer()
    sent = mq.send_batch("q", [b"a", b"b", b"c", b"d"])
    for message in mq.receive("q", max_messages=3):
        message.defer()
    asked = [sent[2], sent[0], sent[3], elsewhere, 999, 0, -1, sent[2], sent[1]]
    assert seqs(mq.receive_deferred("q", asked)) == [sent[2], sent[0], sent[1]]
    assert counts(mq, "other") == {"deferred": 1}


def test_receive_deferred_of_nothing_is_nothing(mq: MQ) -> None:
    mq.create_queue("q")
    assert mq.receive_deferred("q", []) == []


def test_receive_deferred_ignores_limit_and_expiry(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", max_delivery_count=1)
    seq = mq.send("q", "a", ttl="5s")
    one(mq, "q").defer()
    world.clock.advance(6 * SECOND)
    [message] = mq.receive_deferred("q", [seq])
    assert message.delivery_count == 2
    message.abandon()
    assert peeked(mq, "q", seq).dead_letter_reason == "MaxDeliveryCountExceeded"


def test_receive_and_delete_leaves_nothing_to_settle(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send("q", "a")
    message = one(mq, "q", mode="receive_and_delete")
    assert (message.text, message.delivery_count) == ("a", 1)
    assert (message.lock_token, message.locked_until_ms, message.lease_ms) == ("", 0, 0)
    assert mq.stats("q").total == 0


def test_receive_and_delete_counts_earlier_deliveries(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send("q", "a")
    one(mq, "q").abandon()
    assert one(mq, "q", mode="receive_and_delete").delivery_count == 2


def test_messages_are_received_in_the_order_they_were_sent(mq: MQ) -> None:
    mq.create_queue("q")
    for body in (b"a", b"b", b"c"):
        mq.send("q", body)
    assert bodies(mq.receive("q", max_messages=2)) == [b"a", b"b"]
    assert bodies(mq.receive("q", max_messages=2)) == [b"c"]


def test_a_message_settles_through_its_handle_or_by_number_and_token(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send_batch("q", [b"%d" % n for n in range(4)])
    for message in mq.receive("q", max_messages=4):
        settle = (mq.complete, mq.abandon, mq.reject, mq.defer)[message.seq_number - 1]
        settle("q", message.seq_number, message.lock_token)
    assert counts(mq, "q") == {"active": 1, "dead_lettered": 1, "deferred": 1}


def test_a_handles_fields_stay_as_received_after_a_renewal(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", "a")
    message = one(mq, "q")
    first = message.locked_until_ms
    world.clock.advance(SECOND)
    assert message.renew().locked_until_ms == first + SECOND
    assert message.locked_until_ms == first

"""What queues can do beyond the mqlite documents."""

from __future__ import annotations

import pytest

import mqlite
from contract.looks import DAY, HOUR, MINUTE, SECOND, bodies, counts, one, peeked, seqs
from contract.ways import World
from mqlite import OutMessage
from mqlite.api import MQ

FINISHED = "SELECT outcome, seq, finished_at FROM mqlite_finished ORDER BY seq"


def test_a_higher_priority_comes_first_and_equals_by_number(mq: MQ) -> None:
    mq.create_queue("q")
    for priority in (0, -5, 1000, 0, 3, -1000):
        mq.send("q", b"%d" % priority, priority=priority)
    received = mq.receive("q", max_messages=10)
    assert bodies(received) == [b"1000", b"3", b"0", b"0", b"-5", b"-1000"]
    assert [message.priority for message in received] == [1000, 3, 0, 0, -5, -1000]
    assert seqs(received)[2:4] == [1, 4]


def test_single_claims_follow_priority_too(mq: MQ) -> None:
    mq.create_queue("q")
    for priority in (0, 5, 1):
        mq.send("q", b"%d" % priority, priority=priority)
    assert one(mq, "q").body == b"5"
    assert one(mq, "q", mode="receive_and_delete").body == b"1"
    assert one(mq, "q").body == b"0"


def test_priorities_order_lines_by_their_heads_and_never_inside(mq: MQ) -> None:
    mq.create_queue("q", ordering_mode="group_fifo")
    mq.send("q", b"a1", group_id="a", priority=1)
    mq.send("q", b"a2", group_id="a", priority=100)
    mq.send("q", b"b1", group_id="b", priority=50)
    received = mq.receive("q", max_messages=10)
    assert bodies(received) == [b"b1", b"a1"]
    received[1].complete()
    assert bodies(mq.receive("q", max_messages=10)) == [b"a2"]


def test_an_earlier_message_of_lower_priority_still_blocks_its_group(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send("q", b"low", group_id="g", priority=-10)
    mq.send("q", b"high", group_id="g", priority=10)
    assert bodies(mq.receive("q", max_messages=10)) == [b"low"]


def test_priorities_mean_nothing_in_a_strict_queue(mq: MQ) -> None:
    mq.create_queue("q", ordering_mode="strict_fifo")
    for priority in (0, 100, 50):
        mq.send("q", b"%d" % priority, priority=priority)
    taken = mq.receive("q", max_messages=10, mode="receive_and_delete")
    assert bodies(taken) == [b"0", b"100", b"50"]


@pytest.mark.parametrize("priority", [1001, -1001, 2**63])
def test_a_priority_out_of_range_is_refused(mq: MQ, priority: int) -> None:
    mq.create_queue("q")
    with pytest.raises(mqlite.InvalidArgument, match="priority"):
        mq.send("q", b"a", priority=priority)
    with pytest.raises(mqlite.InvalidArgument, match="priority"):
        mq.send_batch("q", [b"a", OutMessage(priority=priority)])
    assert counts(mq, "q") == {}


def test_a_priority_survives_abandon_redrive_and_a_change_of_queue(mq: MQ) -> None:
    mq.create_queue("q")
    mq.create_queue("other")
    mq.send("q", b"a", priority=7)
    one(mq, "q").abandon()
    one(mq, "q").reject()
    mq.redrive("q")
    assert one(mq, "q").priority == 7
    mq.send("q", b"b", priority=8)
    one(mq, "q").reject()
    mq.redrive("q", target="other")
    assert one(mq, "other").priority == 8


def test_claims_by_due_time_take_what_was_due_first(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", claim_order="due_time")
    mq.send("q", b"second", at=world.at(2 * SECOND))
    mq.send("q", b"first", at=world.at(SECOND))
    world.later(2 * SECOND)
    mq.send("q", b"third")
    assert bodies(mq.receive("q", max_messages=10)) == [b"first", b"second", b"third"]


def test_an_abandoned_message_goes_behind_others_when_claims_go_by_due_time(
    world: World,
) -> None:
    mq = world.mq
    mq.create_queue("q", claim_order="due_time")
    mq.send_batch("q", [b"1", b"2"])
    first = one(mq, "q")
    world.clock.advance(1)
    first.abandon()
    assert bodies(mq.receive("q", max_messages=10)) == [b"2", b"1"]


VECTORS = {
    "4fbbc2e5-8549-533f-b028-537c04786ebc": {
        1: 1112,
        2: 1848,
        3: 4542,
        5: 18538,
        12: 1897163,
        13: 3600000,
        20: 2983500,
    },
    "00000000-0000-7000-8000-000000000001": {
        1: 802,
        2: 2074,
        3: 3302,
        5: 13578,
        12: 1868886,
        13: 3600000,
        20: 3600000,
    },
}
POLICY = {
    "retry_initial_delay": "1s",
    "retry_max_delay": "1h",
    "retry_multiplier": 2,
    "retry_jitter": 0.2,
    "max_delivery_count": 100,
}


def delays(world: World, message_id: str, failures: int) -> dict[int, int]:
    """The delay after each failure of one message."""
    mq = world.mq
    seq = mq.send("q", b"", message_id=message_id)
    seen = {}
    for failure in range(1, failures + 1):
        one(mq, "q").abandon()
        parked = peeked(mq, "q", seq)
        assert parked.state == "scheduled"
        seen[failure] = parked.visible_at_ms - world.clock.now()
        world.later(seen[failure])
    return seen


@pytest.mark.parametrize("message_id", VECTORS)
def test_retry_delays_match_the_vectors(world: World, message_id: str) -> None:
    world.mq.create_queue("q", **POLICY)
    seen = delays(world, message_id, 20)
    assert {n: seen[n] for n in VECTORS[message_id]} == VECTORS[message_id]


def test_a_retry_delay_is_capped_after_its_jitter(world: World) -> None:
    policy = {**POLICY, "retry_initial_delay": 0.2, "retry_max_delay": 0.2}
    world.mq.create_queue("q", **policy)
    assert delays(world, "00000000-0000-7000-8000-000000000001", 2) == {1: 160, 2: 200}


def test_without_jitter_delays_grow_by_the_multiplier(world: World) -> None:
    policy = {**POLICY, "retry_jitter": 0, "retry_multiplier": 3, "retry_max_delay": "20s"}
    world.mq.create_queue("q", **policy)
    assert delays(world, "x", 4) == {1: 1000, 2: 3000, 3: 9000, 4: 20_000}


def test_without_a_maximum_delays_grow_on(world: World) -> None:
    policy = {**POLICY, "retry_jitter": 0, "retry_max_delay": 0}
    world.mq.create_queue("q", **policy)
    assert delays(world, "x", 16)[16] == 2**15 * SECOND


def test_an_abandon_with_its_own_delay_does_not_ask_the_policy(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", **POLICY)
    seq = mq.send("q", b"a")
    one(mq, "q").abandon(delay="7s")
    assert peeked(mq, "q", seq).visible_at_ms == world.clock.now() + 7 * SECOND


def test_a_lock_expiry_follows_the_retry_policy(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", **{**POLICY, "retry_jitter": 0})
    seq = mq.send("q", b"a")
    one(mq, "q")
    world.later(30 * SECOND)
    parked = peeked(mq, "q", seq)
    assert (parked.state, parked.failure_count) == ("scheduled", 1)
    assert parked.visible_at_ms == world.clock.now() + SECOND


def test_a_retry_delay_holds_the_line(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", ordering_mode="group_fifo", **{**POLICY, "retry_jitter": 0})
    for body in (b"1", b"2"):
        mq.send("q", body, group_id="g")
    one(mq, "q").abandon()
    assert mq.receive("q", max_messages=10) == []
    world.later(SECOND)
    assert one(mq, "q").body == b"1"


def test_failures_are_counted_beside_deliveries(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    seq = mq.send("q", b"a")
    one(mq, "q").abandon()
    one(mq, "q").defer()
    [fetched] = mq.receive_deferred("q", [seq])
    assert (fetched.delivery_count, fetched.failure_count) == (3, 1)
    world.later(30 * SECOND)
    message = peeked(mq, "q", seq)
    assert (message.delivery_count, message.failure_count) == (3, 2)


def test_by_failures_a_message_dies_with_its_second_failure(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", max_counts="failures", max_delivery_count=2)
    seq = mq.send("q", b"a")
    one(mq, "q").defer()
    mq.receive_deferred("q", [seq])[0].defer()
    mq.receive_deferred("q", [seq])[0].abandon()
    assert peeked(mq, "q", seq).state == "active"
    one(mq, "q")
    world.later(30 * SECOND)
    dead = peeked(mq, "q", seq)
    assert (dead.state, dead.dead_letter_reason) == ("dead_lettered", "MaxDeliveryCountExceeded")
    assert (dead.delivery_count, dead.failure_count) == (4, 2)


def test_a_reject_is_no_failure_and_a_redrive_forgets_them(mq: MQ) -> None:
    mq.create_queue("q")
    seq = mq.send("q", b"a")
    one(mq, "q").abandon()
    one(mq, "q").reject()
    assert peeked(mq, "q", seq).failure_count == 1
    mq.redrive("q")
    assert peeked(mq, "q", seq).failure_count == 0


def test_finished_deliveries_are_kept_apart_for_as_long_as_the_queue_says(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", retain_completed="1h")
    completed, batch = mq.send_batch("q", [b"a", b"b" * 5000])
    canceled = mq.send("q", b"c", at=world.at(SECOND))
    one(mq, "q").complete()
    mq.complete_batch("q", mq.receive("q"))
    mq.cancel("q", canceled)
    now = world.clock.now()
    assert world.rows(FINISHED) == [
        ("completed", completed, now),
        ("completed", batch, now),
        ("canceled", canceled, now),
    ]
    assert mq.peek("q") == []
    assert mq.stats("q").total == 0
    world.later(HOUR - 1)
    assert len(world.rows(FINISHED)) == 3
    world.later(1)
    assert world.rows(FINISHED) == []
    assert world.rows("SELECT 1 FROM mqlite_payloads") == []


def test_what_is_deleted_on_receipt_or_discarded_is_not_kept(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", retain_completed="1h", dead_letter_on_expire=False)
    mq.send("q", b"a")
    one(mq, "q", mode="receive_and_delete")
    mq.send("q", b"b", ttl="1s")
    world.later(MINUTE)
    mq.send("q", b"c")
    one(mq, "q").reject()
    mq.purge("q")
    assert world.rows(FINISHED) == []


def test_finished_deliveries_do_not_block_deletion(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", retain_completed="10d")
    mq.subscribe("t", "s")
    mq.create_queue("s", kind="subscription", retain_completed="10d")
    for queue, target in (("q", "q"), ("s", "t")):
        mq.send(target, b"a")
        one(mq, queue).complete()
    mq.delete_queue("q")
    mq.unsubscribe("t", "s")
    assert mq.list_queues() == []
    world.later(DAY)
    assert world.rows(FINISHED) == []


def test_a_completion_that_is_kept_replays_and_promotes_like_any_other(mq: MQ) -> None:
    mq.create_queue("q", retain_completed="1h", ordering_mode="group_fifo")
    for body in (b"1", b"2"):
        mq.send("q", body, group_id="g")
    first = one(mq, "q")
    first.complete()
    first.complete()
    assert [slot.ok for slot in mq.complete_batch("q", [first])] == [True]
    assert one(mq, "q").body == b"2"


def test_a_queue_may_keep_its_leases_over_a_restart(world: World) -> None:
    world.mq.create_queue("keeps", keep_leases=True)
    world.mq.create_queue("reclaims")
    held = {}
    for queue in ("keeps", "reclaims"):
        world.mq.send(queue, b"a")
        held[queue] = one(world.mq, queue)
    mq = world.reopen()
    assert counts(mq, "keeps") == {"locked": 1}
    assert counts(mq, "reclaims") == {"active": 1}
    mq.complete("keeps", *held["keeps"].lease)
    with pytest.raises(mqlite.LockLost):
        mq.complete("reclaims", *held["reclaims"].lease)


def test_a_kept_lease_still_runs_out(world: World) -> None:
    world.mq.create_queue("q", keep_leases=True)
    world.mq.send("q", b"a")
    one(world.mq, "q")
    mq = world.reopen()
    world.later(30 * SECOND)
    assert one(mq, "q").delivery_count == 2

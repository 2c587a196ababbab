"""Who blocks whom in the three ordering modes."""

from __future__ import annotations

import pytest

from contract.looks import MINUTE, SECOND, bodies, counts, one, seqs
from contract.ways import World
from mqlite import OutMessage
from mqlite.api import MQ

MODES = ["standard", "group_fifo"]


def grouped(*pairs: tuple[str, str]) -> list[OutMessage]:
    return [OutMessage(body=body.encode(), group_id=group) for group, body in pairs]


@pytest.mark.parametrize("mode", MODES)
def test_the_second_of_a_group_waits_for_the_first(mq: MQ, mode: str) -> None:
    mq.create_queue("q", ordering_mode=mode)
    mq.send_batch("q", grouped(("g", "1"), ("g", "2")))
    first = one(mq, "q")
    assert mq.receive("q") == []
    first.complete()
    assert one(mq, "q").body == b"2"


@pytest.mark.parametrize("mode", MODES)
def test_groups_are_in_flight_side_by_side(mq: MQ, mode: str) -> None:
    mq.create_queue("q", ordering_mode=mode)
    mq.send_batch("q", grouped(("a", "a1"), ("a", "a2"), ("b", "b1")))
    assert bodies(mq.receive("q", max_messages=10)) == [b"a1", b"b1"]


def test_ungrouped_messages_pass_blocked_groups(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send_batch("q", grouped(("g", "1"), ("g", "2"), ("", "free1"), ("", "free2")))
    assert bodies(mq.receive("q", max_messages=10)) == [b"1", b"free1", b"free2"]


def test_a_peek_lock_batch_holds_one_message_of_a_group(mq: MQ) -> None:
    mq.create_queue("q", ordering_mode="group_fifo")
    mq.send_batch("q", grouped(("a", "a1"), ("b", "b1"), ("a", "a2"), ("b", "b2")))
    first = mq.receive("q", max_messages=10)
    assert bodies(first) == [b"a1", b"b1"]
    first[1].complete()
    assert bodies(mq.receive("q", max_messages=10)) == [b"b2"]


def test_strict_fifo_has_one_message_in_flight_whatever_its_group(mq: MQ) -> None:
    mq.create_queue("q", ordering_mode="strict_fifo")
    sent = mq.send_batch("q", grouped(("a", "1"), ("b", "2"), ("", "3")))
    received = []
    for _ in sent:
        [message] = mq.receive("q", max_messages=10)
        assert mq.receive("q", max_messages=10) == []
        received.append(message)
        message.complete()
    assert seqs(received) == sent


def test_a_receive_and_delete_batch_holds_several_of_one_line_in_order(mq: MQ) -> None:
    mq.create_queue("q", ordering_mode="group_fifo")
    mq.send_batch("q", grouped(("a", "a1"), ("b", "b1"), ("a", "a2"), ("a", "a3"), ("b", "b2")))
    taken = mq.receive("q", max_messages=4, mode="receive_and_delete")
    assert bodies(taken) == [b"a1", b"b1", b"a2", b"a3"]
    assert bodies(mq.peek("q")) == [b"b2"]


def test_a_strict_receive_and_delete_batch_is_full(mq: MQ) -> None:
    mq.create_queue("q", ordering_mode="strict_fifo")
    mq.send_batch("q", [b"%d" % n for n in range(5)])
    taken = mq.receive("q", max_messages=4, mode="receive_and_delete")
    assert bodies(taken) == [b"0", b"1", b"2", b"3"]


def test_receive_and_delete_stops_at_a_locked_head(mq: MQ) -> None:
    mq.create_queue("q", ordering_mode="group_fifo")
    mq.send_batch("q", grouped(("a", "a1"), ("a", "a2"), ("b", "b1")))
    one(mq, "q")
    assert bodies(mq.receive("q", max_messages=9, mode="receive_and_delete")) == [b"b1"]


def test_a_deferred_ungrouped_message_blocks_nobody(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send_batch("q", [b"1", b"2"])
    one(mq, "q").defer()
    assert one(mq, "q").body == b"2"


@pytest.mark.parametrize("mode", MODES)
def test_a_deferred_head_blocks_only_its_group(mq: MQ, mode: str) -> None:
    mq.create_queue("q", ordering_mode=mode)
    sent = mq.send_batch("q", grouped(("a", "a1"), ("a", "a2"), ("b", "b1")))
    one(mq, "q").defer()
    assert bodies(mq.receive("q", max_messages=10)) == [b"b1"]
    [deferred] = mq.receive_deferred("q", [sent[0]])
    deferred.complete()
    assert bodies(mq.receive("q", max_messages=10)) == [b"a2"]


def test_a_deferred_head_blocks_a_strict_queue(mq: MQ) -> None:
    mq.create_queue("q", ordering_mode="strict_fifo")
    sent = mq.send_batch("q", [b"1", b"2"])
    one(mq, "q").defer()
    assert mq.receive("q") == []
    mq.receive_deferred("q", [sent[0]])[0].complete()
    assert one(mq, "q").body == b"2"


@pytest.mark.parametrize("mode", ["standard", "group_fifo", "strict_fifo"])
def test_an_expired_head_blocks_until_the_sweep_and_then_comes_first(
    world: World, mode: str
) -> None:
    mq = world.mq
    mq.create_queue("q", ordering_mode=mode)
    mq.send_batch("q", grouped(("g", "1"), ("g", "2")))
    one(mq, "q")
    world.clock.advance(MINUTE)
    assert mq.receive("q", max_messages=10) == []
    world.maintain()
    [again] = mq.receive("q", max_messages=10)
    assert (again.body, again.delivery_count) == (b"1", 2)


@pytest.mark.parametrize("mode", ["standard", "group_fifo", "strict_fifo"])
def test_a_parked_head_holds_its_line(world: World, mode: str) -> None:
    mq = world.mq
    mq.create_queue("q", ordering_mode=mode)
    mq.send_batch("q", grouped(("g", "1"), ("g", "2")))
    one(mq, "q").abandon(delay="10s")
    assert mq.receive("q", max_messages=10) == []
    world.later(10 * SECOND)
    [again] = mq.receive("q", max_messages=10)
    assert (again.body, again.delivery_count) == (b"1", 2)


@pytest.mark.parametrize("mode", ["standard", "group_fifo", "strict_fifo"])
def test_an_abandoned_head_comes_first_again(mq: MQ, mode: str) -> None:
    mq.create_queue("q", ordering_mode=mode)
    mq.send_batch("q", grouped(("g", "1"), ("g", "2")))
    one(mq, "q").abandon()
    assert bodies(mq.receive("q", max_messages=10)) == [b"1"]


def test_a_scheduled_message_blocks_later_ones_of_its_group_only(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", ordering_mode="group_fifo")
    mq.send("q", b"a1", group_id="a")
    mq.send("q", b"a2", group_id="a", at=world.at(10 * SECOND))
    mq.send("q", b"a3", group_id="a")
    mq.send("q", b"b1", group_id="b")
    first = mq.receive("q", max_messages=10)
    assert bodies(first) == [b"a1", b"b1"]
    first[0].complete()
    assert mq.receive("q", max_messages=10) == []
    world.later(10 * SECOND)
    assert bodies(mq.receive("q", max_messages=10)) == [b"a2"]


def test_a_scheduled_message_blocks_a_strict_queue(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", ordering_mode="strict_fifo")
    scheduled = mq.send("q", b"1", at=world.at(10 * SECOND))
    mq.send("q", b"2")
    assert mq.receive("q") == []
    mq.cancel("q", scheduled)
    assert one(mq, "q").body == b"2"


@pytest.mark.parametrize("mode", ["standard", "group_fifo", "strict_fifo"])
def test_a_dead_letter_never_blocks(mq: MQ, mode: str) -> None:
    mq.create_queue("q", ordering_mode=mode)
    mq.send_batch("q", grouped(("g", "1"), ("g", "2")))
    one(mq, "q").reject()
    assert one(mq, "q").body == b"2"


@pytest.mark.parametrize("mode", ["standard", "group_fifo", "strict_fifo"])
@pytest.mark.parametrize("discard", [False, True], ids=["dead-letter", "discard"])
def test_an_expired_active_head_is_stepped_over_by_the_claim(
    world: World, mode: str, discard: bool
) -> None:
    mq = world.mq
    mq.create_queue("q", ordering_mode=mode, dead_letter_on_expire=not discard)
    mq.send("q", b"1", group_id="g", ttl="5s")
    mq.send("q", b"2", group_id="g")
    world.clock.advance(5 * SECOND)
    assert bodies(mq.receive("q", max_messages=10)) == [b"2"]


def test_ungrouped_messages_of_a_group_fifo_queue_are_lines_of_their_own(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send_batch("q", grouped(("", "1"), ("", "2"), ("g", "g1"), ("g", "g2")))
    mq.create_queue("q", ordering_mode="group_fifo")
    assert bodies(mq.receive("q", max_messages=10)) == [b"1", b"2", b"g1"]


def test_a_queue_that_becomes_strict_lines_up_what_it_holds(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send_batch("q", grouped(("", "1"), ("g", "2"), ("h", "3")))
    locked = one(mq, "q")
    mq.create_queue("q", ordering_mode="strict_fifo")
    assert mq.receive("q", max_messages=10) == []
    locked.complete()
    assert bodies(mq.receive("q", max_messages=10)) == [b"2"]


def test_a_queue_that_is_strict_no_longer_frees_what_it_holds(mq: MQ) -> None:
    mq.create_queue("q", ordering_mode="strict_fifo")
    mq.send_batch("q", grouped(("g", "1"), ("g", "2"), ("h", "3"), ("", "4")))
    one(mq, "q")
    mq.create_queue("q")
    assert bodies(mq.receive("q", max_messages=10)) == [b"3", b"4"]


def test_dead_letters_stay_out_of_line_when_the_mode_changes(mq: MQ) -> None:
    mq.create_queue("q", ordering_mode="strict_fifo")
    mq.send_batch("q", grouped(("g", "1"), ("g", "2")))
    one(mq, "q").reject()
    mq.create_queue("q", ordering_mode="group_fifo")
    mq.create_queue("q", ordering_mode="strict_fifo")
    assert counts(mq, "q") == {"active": 1, "dead_lettered": 1}
    assert one(mq, "q").body == b"2"


def test_a_redriven_message_goes_to_the_front_of_its_line(mq: MQ) -> None:
    mq.create_queue("q", ordering_mode="group_fifo")
    mq.send_batch("q", grouped(("g", "1"), ("g", "2"), ("g", "3")))
    one(mq, "q").reject()
    mq.redrive("q")
    first = one(mq, "q")
    assert first.body == b"1"
    assert mq.receive("q") == []
    first.complete()
    assert one(mq, "q").body == b"2"


def test_a_redrive_before_a_locked_head_takes_its_place_without_touching_it(mq: MQ) -> None:
    mq.create_queue("q", ordering_mode="group_fifo")
    mq.send_batch("q", grouped(("g", "1"), ("g", "2")))
    one(mq, "q").reject()
    second = one(mq, "q")
    mq.redrive("q")
    first = one(mq, "q")
    assert (first.body, second.body) == (b"1", b"2")
    second.complete()
    first.abandon()
    assert one(mq, "q").body == b"1"


def test_groups_stay_in_order_over_many_rounds_of_abandon_and_complete(mq: MQ) -> None:
    mq.create_queue("q", ordering_mode="group_fifo", max_delivery_count=1000)
    groups = ["a", "b", "c"]
    mq.send_batch("q", grouped(*((group, f"{group}{n}") for n in range(6) for group in groups)))
    done: dict[str, list[bytes]] = {group: [] for group in groups}
    rounds = 0
    while batch := mq.receive("q", max_messages=10):
        for message in batch:
            rounds += 1
            if rounds % 3 == 0:
                message.abandon()
            else:
                message.complete()
                done[message.group_id].append(message.body)
    for group, completed in done.items():
        assert completed == [f"{group}{n}".encode() for n in range(6)]

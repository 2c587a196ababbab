"""Batches: settled and renewed in one transaction, with positional results."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import mqlite
from contract.looks import HOUR, NOBODY, SECOND, counts, one, peeked, seqs
from contract.ways import World
from mqlite.api import MQ
from mqlite.messages import Message
from mqlite.model import SettleResult

MIB = 1024 * 1024


def locked(mq: MQ, number: int) -> list[Message]:
    mq.create_queue("q")
    sent = 0
    held: list[Message] = []
    while sent < number:
        size = min(256, number - sent)
        mq.send_batch("q", [b""] * size)
        held += mq.receive("q", max_messages=size)
        sent += size
    return held


def oks(results: list[SettleResult]) -> list[bool]:
    return [slot.ok for slot in results]


def test_complete_batch_answers_in_position_and_replays(mq: MQ) -> None:
    held = locked(mq, 5)
    items = [*(message.lease for message in held), (999, NOBODY)]
    for _ in range(2):
        results = mq.complete_batch("q", items)
        assert [slot.seq_number for slot in results] == [*seqs(held), 999]
        assert oks(results) == [True] * 5 + [False]
    assert counts(mq, "q") == {}


def test_complete_batch_takes_handles_and_pairs(mq: MQ) -> None:
    first, second = locked(mq, 2)
    assert oks(mq.complete_batch("q", [first, second.lease])) == [True, True]


def test_complete_batch_fences_each_pair(mq: MQ) -> None:
    held = locked(mq, 256)
    items = [message.lease for message in held]
    items += [(held[0].seq_number, NOBODY), (held[1].seq_number, "")]
    for _ in range(2):
        assert oks(mq.complete_batch("q", items)) == [True] * 256 + [False, False]
    assert counts(mq, "q") == {}


def test_the_same_pair_twice_is_ok_twice(mq: MQ) -> None:
    [message] = locked(mq, 1)
    assert oks(mq.complete_batch("q", [message, message])) == [True, True]


def test_a_good_and_a_bad_token_for_one_message_differ(mq: MQ) -> None:
    [message] = locked(mq, 1)
    seq = message.seq_number
    assert oks(mq.complete_batch("q", [(seq, NOBODY), message, (seq, "")])) == [False, True, False]


def test_a_new_receipt_does_not_vouch_for_another_pair_with_its_token(mq: MQ) -> None:
    first, second = locked(mq, 2)
    mismatched = (second.seq_number, first.lock_token)
    for items in ([mismatched, first], [first, mismatched]):
        assert oks(mq.complete_batch("q", items)) == [item is first for item in items]
    assert counts(mq, "q") == {"locked": 1}


@pytest.mark.parametrize("queue", ["q", "nowhere"])
def test_complete_batch_of_nothing_is_nothing(mq: MQ, queue: str) -> None:
    mq.create_queue("q")
    assert mq.complete_batch(queue, []) == []


def test_complete_batch_on_an_unknown_queue_is_not_ok_anywhere(mq: MQ) -> None:
    assert oks(mq.complete_batch("nowhere", [(1, NOBODY), (2, "")])) == [False, False]


def test_complete_batch_takes_20_000_unknown_pairs(mq: MQ) -> None:
    mq.create_queue("q")
    results = mq.complete_batch("q", [(seq, NOBODY) for seq in range(1, 20_001)])
    assert len(results) == 20_000
    assert not any(oks(results))


def test_8192_messages_complete_in_one_call_and_512_renew(mq: MQ) -> None:
    held = locked(mq, 8192)
    with pytest.raises(mqlite.InvalidArgument):
        mq.renew_batch("q", held)
    assert all(oks(mq.renew_batch("q", held[:512])))
    assert all(oks(mq.complete_batch("q", held)))
    assert counts(mq, "q") == {}


def test_complete_batch_promotes_the_followers(mq: MQ) -> None:
    mq.create_queue("q", ordering_mode="group_fifo")
    for number in range(3):
        for group in ("a", "b"):
            mq.send("q", b"%d" % number, group_id=group)
    for number in range(3):
        batch = mq.receive("q", max_messages=10)
        assert [(m.group_id, m.body) for m in batch] == [
            ("a", b"%d" % number),
            ("b", b"%d" % number),
        ]
        assert oks(mq.complete_batch("q", batch)) == [True, True]


def test_renew_batch_answers_in_position_with_deadlines(world: World) -> None:
    mq = world.mq
    held = locked(mq, 5)
    world.clock.advance(SECOND)
    wrong, blank = (held[0].seq_number, NOBODY), (held[1].seq_number, "")
    results = mq.renew_batch("q", [wrong, *held, blank])
    assert oks(results) == [False, *[True] * 5, False]
    assert [r.seq_number for r in results] == [wrong[0], *seqs(held), blank[0]]
    until = world.clock.now() + 30 * SECOND
    assert [r.locked_until_ms for r in results] == [0, *[until] * 5, 0]
    assert [r.lease_ms for r in results] == [0, *[30 * SECOND] * 5, 0]
    assert all(m.locked_until_ms == until for m in mq.peek("q", state="locked"))


def test_renew_batch_with_a_wrong_token_leaves_the_deadline(world: World) -> None:
    mq = world.mq
    [message] = locked(mq, 1)
    world.clock.advance(SECOND)
    assert oks(mq.renew_batch("q", [(message.seq_number, NOBODY)])) == [False]
    assert peeked(mq, "q", message.seq_number).locked_until_ms == message.locked_until_ms


def test_renew_batch_takes_512_and_refuses_513(mq: MQ) -> None:
    held = locked(mq, 513)
    assert all(oks(mq.renew_batch("q", held[:512])))
    with pytest.raises(mqlite.InvalidArgument):
        mq.renew_batch("q", held)


def test_renew_batch_counts_blank_tokens_and_looks_at_the_number_first(mq: MQ) -> None:
    with pytest.raises(mqlite.InvalidArgument):
        mq.renew_batch("nowhere", [(seq, "") for seq in range(513)])


def test_renew_batch_looks_at_the_queue_only_for_real_tokens(mq: MQ) -> None:
    assert mq.renew_batch("nowhere", []) == []
    assert oks(mq.renew_batch("nowhere", [(1, ""), (2, "")])) == [False, False]
    with pytest.raises(mqlite.NotFound):
        mq.renew_batch("nowhere", [(1, NOBODY)])


def test_renew_batch_after_the_sweep_is_not_ok(world: World) -> None:
    mq = world.mq
    held = locked(mq, 3)
    world.later(HOUR)
    assert oks(mq.renew_batch("q", held)) == [False] * 3
    assert counts(mq, "q") == {"active": 3}


def test_a_receive_stops_at_32_mib_of_bodies_and_locks_only_what_it_answers(mq: MQ) -> None:
    mq.create_queue("q")
    for number in range(36):
        mq.send("q", bytes([number]) * MIB)
    first = mq.receive("q", max_messages=256)
    assert len(first) == 32
    assert counts(mq, "q") == {"locked": 32, "active": 4}
    rest = mq.receive("q", max_messages=256)
    assert [message.body[:1] for message in first + rest] == [bytes([n]) for n in range(36)]


def test_the_message_that_crosses_32_mib_is_still_answered(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send("q", b"x" * (MIB - 1))
    for _ in range(33):
        mq.send("q", b"x" * MIB)
    assert len(mq.peek("q", max_messages=256)) == 33
    assert len(mq.receive("q", max_messages=256)) == 33


def test_a_peek_stops_at_32_mib_and_goes_on_from_a_number(mq: MQ) -> None:
    mq.create_queue("q")
    for _ in range(34):
        mq.send("q", b"x" * MIB)
    page = mq.peek("q", max_messages=1000)
    assert seqs(page) == list(range(1, 33))
    assert seqs(mq.peek("q", from_seq=33, max_messages=1000)) == [33, 34]


@pytest.mark.parametrize("way", ["sync", "async"])  # no request is larger than 32 MiB
def test_a_message_over_the_whole_budget_is_delivered_on_its_own(
    make_world: Callable[..., World],
) -> None:
    mq = make_world(max_message_bytes=40 * MIB).mq
    mq.create_queue("q")
    mq.send_batch("q", [b"x" * (33 * MIB), b"y"])
    assert seqs(mq.peek("q")) == [1]
    assert seqs(mq.receive("q", max_messages=10)) == [1]
    assert one(mq, "q").body == b"y"


def test_receive_and_delete_keeps_what_it_does_not_answer(mq: MQ) -> None:
    mq.create_queue("q")
    for _ in range(33):
        mq.send("q", b"x" * MIB)
    assert len(mq.receive("q", max_messages=256, mode="receive_and_delete")) == 32
    assert counts(mq, "q") == {"active": 1}


def test_receive_deferred_stops_at_32_mib_but_not_before_the_first(mq: MQ) -> None:
    mq.create_queue("q")
    for _ in range(34):
        mq.send("q", b"x" * MIB)
    while batch := mq.receive("q", max_messages=256):
        for message in batch:
            message.defer()
    assert seqs(mq.receive_deferred("q", range(1, 35))) == list(range(1, 33))
    assert counts(mq, "q") == {"locked": 32, "deferred": 2}


def test_receive_deferred_takes_256_numbers_and_refuses_257(mq: MQ) -> None:
    mq.create_queue("q")
    assert mq.receive_deferred("q", range(1, 257)) == []
    with pytest.raises(mqlite.InvalidArgument, match="256"):
        mq.receive_deferred("q", range(1, 258))

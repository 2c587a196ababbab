"""Within a queue's window a message id, or a body, stands for one message."""

from __future__ import annotations

import hashlib

import pytest

import mqlite
from contract.looks import MINUTE, SECOND, bodies, counts, one, seqs
from contract.ways import World
from mqlite import OutMessage
from mqlite.api import MQ


def messages(*pairs: tuple[str, str]) -> list[OutMessage]:
    return [OutMessage(message_id=id_, body=body.encode()) for id_, body in pairs]


@pytest.fixture
def queue(mq: MQ) -> str:
    mq.create_queue("q", dedup_window="1m")
    return "q"


def test_a_resend_answers_the_first_number_and_adds_nothing(mq: MQ, queue: str) -> None:
    assert mq.send(queue, b"a", message_id="1") == mq.send(queue, b"a", message_id="1")
    assert counts(mq, queue) == {"active": 1}


def test_the_same_id_with_another_body_conflicts(mq: MQ, queue: str) -> None:
    mq.send(queue, b"a", message_id="1")
    with pytest.raises(mqlite.DedupConflict):
        mq.send(queue, b"b", message_id="1")
    assert bodies(mq.peek(queue)) == [b"a"]


def test_without_an_id_the_body_is_the_key(mq: MQ, queue: str) -> None:
    assert mq.send(queue, b"a") == mq.send(queue, b"a")
    assert mq.send(queue, b"b") != mq.send(queue, b"a")
    assert counts(mq, queue) == {"active": 2}


def test_ids_and_body_digests_share_one_key_space(mq: MQ, queue: str) -> None:
    seq = mq.send(queue, b"a")
    digest = hashlib.sha256(b"a").hexdigest()
    assert mq.send(queue, b"a", message_id=digest) == seq
    with pytest.raises(mqlite.DedupConflict):
        mq.send(queue, b"b", message_id=digest)


def test_the_same_body_under_another_id_is_another_message(mq: MQ, queue: str) -> None:
    assert mq.send(queue, b"a", message_id="1") != mq.send(queue, b"a", message_id="2")
    assert counts(mq, queue) == {"active": 2}


def test_only_the_body_is_compared(world: World, mq: MQ, queue: str) -> None:
    seq = mq.send(queue, b"a", message_id="1", subject="first")
    again = mq.send(
        queue,
        b"a",
        message_id="1",
        subject="second",
        group_id="g",
        properties={"k": "v"},
        priority=9,
        ttl="1s",
        at=world.at(SECOND),
    )
    assert again == seq
    assert one(mq, queue).subject == "first"


def test_the_window_is_fixed_from_the_first_accepted_send(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", dedup_window="1m")
    first = mq.send("q", b"a", message_id="1")
    for _ in range(5):
        world.clock.advance(10 * SECOND)
        assert mq.send("q", b"a", message_id="1") == first
    world.clock.advance(10 * SECOND - 1)
    assert mq.send("q", b"a", message_id="1") == first
    world.clock.advance(1)
    second = mq.send("q", b"a", message_id="1")
    assert second != first
    world.clock.advance(MINUTE - 1)
    assert mq.send("q", b"a", message_id="1") == second


def test_after_the_window_the_id_may_carry_another_body(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", dedup_window="1m")
    mq.send("q", b"a", message_id="1")
    world.clock.advance(MINUTE)
    second = mq.send("q", b"b", message_id="1")
    assert mq.send("q", b"b", message_id="1") == second
    with pytest.raises(mqlite.DedupConflict):
        mq.send("q", b"a", message_id="1")
    assert bodies(mq.peek("q")) == [b"a", b"b"]


@pytest.mark.parametrize("end", ["complete", "reject and purge", "cancel"])
def test_an_id_counts_for_its_window_even_when_the_message_is_gone(world: World, end: str) -> None:
    mq = world.mq
    mq.create_queue("q", dedup_window="1m")
    at = world.at(SECOND) if end == "cancel" else None
    seq = mq.send("q", b"a", message_id="1", at=at)
    if end == "cancel":
        mq.cancel("q", seq)
    elif end == "complete":
        one(mq, "q").complete()
    else:
        one(mq, "q").reject()
        mq.purge("q")
    assert mq.send("q", b"a", message_id="1") == seq
    assert counts(mq, "q") == {}


def test_a_duplicate_of_a_scheduled_message_answers_its_number(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", dedup_window="1m")
    seq = mq.send("q", b"a", message_id="1", at=world.at(SECOND))
    assert mq.send("q", b"a", message_id="1") == seq
    assert mq.send("q", b"a", message_id="1", at=world.at(2 * SECOND)) == seq
    assert counts(mq, "q") == {"scheduled": 1}


def test_a_conflict_in_a_batch_is_0_in_its_slot_and_the_others_are_sent(mq: MQ, queue: str) -> None:
    mq.send(queue, b"a", message_id="1")
    sent = mq.send_batch(queue, messages(("2", "b"), ("1", "other"), ("3", "c")))
    assert sent[1] == 0
    assert bodies(mq.peek(queue)) == [b"a", b"b", b"c"]
    assert seqs(mq.peek(queue))[1:] == [sent[0], sent[2]]


def test_a_batch_of_one_conflicts_like_a_single_send(mq: MQ, queue: str) -> None:
    mq.send(queue, b"a", message_id="1")
    with pytest.raises(mqlite.DedupConflict):
        mq.send_batch(queue, messages(("1", "other")))


def test_repeats_within_a_batch(mq: MQ, queue: str) -> None:
    sent = mq.send_batch(
        queue, messages(("1", "a"), ("1", "a"), ("1", "b"), ("2", "a"), ("1", "a"))
    )
    assert sent == [sent[0], sent[0], 0, sent[3], sent[0]]
    assert bodies(mq.peek(queue)) == [b"a", b"a"]


def test_repeats_within_a_batch_of_an_earlier_message(mq: MQ, queue: str) -> None:
    seq = mq.send(queue, b"a", message_id="1")
    assert mq.send_batch(queue, messages(("1", "a"), ("1", "a"), ("1", "b"))) == [seq, seq, 0]


def test_after_a_conflict_in_a_batch_the_first_meaning_still_holds(mq: MQ, queue: str) -> None:
    seq = mq.send(queue, b"a", message_id="1")
    assert mq.send_batch(queue, messages(("1", "b"), ("1", "a"), ("1", "b"))) == [0, seq, 0]


def test_ids_mean_nothing_without_a_window(mq: MQ) -> None:
    mq.create_queue("q")
    assert mq.send("q", b"a", message_id="1") != mq.send("q", b"b", message_id="1")
    assert counts(mq, "q") == {"active": 2}


def test_ids_belong_to_their_queue(mq: MQ, queue: str) -> None:
    mq.create_queue("other", dedup_window="1m")
    assert mq.send(queue, b"a", message_id="1") != mq.send("other", b"b", message_id="1")


def test_a_changed_window_takes_effect_at_once(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", dedup_window="1h")
    first = mq.send("q", b"a", message_id="1")
    world.clock.advance(MINUTE)
    assert mq.send("q", b"a", message_id="1") == first
    mq.create_queue("q", dedup_window="1m")
    second = mq.send("q", b"a", message_id="1")
    assert second != first
    mq.create_queue("q")
    assert mq.send("q", b"a", message_id="1") not in (first, second)


def test_keys_are_compared_in_full(mq: MQ, queue: str) -> None:
    ids = ["x" * 5000 + "a", "x" * 5000 + "b", "A", "a", "\u00e9", "e\u0301", "nul\x00", "nul"]
    sent = [mq.send(queue, b"body", message_id=id_) for id_ in ids]
    assert len(set(sent)) == len(ids)
    assert [mq.send(queue, b"body", message_id=id_) for id_ in ids] == sent


def test_a_refused_send_leaves_no_trace_of_its_ids(mq: MQ) -> None:
    mq.create_queue("q", dedup_window="1m", ordering_mode="group_fifo")
    with pytest.raises(mqlite.GroupRequired):
        mq.send_batch("q", [OutMessage(message_id="1", group_id="g", body=b"a"), b"b"])
    assert mq.send("q", b"other", message_id="1", group_id="g") > 0
    assert counts(mq, "q") == {"active": 1}


def test_a_redrive_into_another_queue_neither_reads_nor_writes_ids(mq: MQ, queue: str) -> None:
    mq.create_queue("source")
    mq.send(queue, b"a", message_id="1")
    for body in (b"x", b"y"):
        mq.send("source", body, message_id="1" if body == b"x" else "2")
        one(mq, "source").reject()
    assert mq.redrive("source", target=queue).count == 2
    assert bodies(mq.peek(queue)) == [b"a", b"x", b"y"]
    assert mq.send(queue, b"other", message_id="2") > 0


def test_ids_survive_reopening(world: World) -> None:
    world.mq.create_queue("q", dedup_window="1m")
    seq = world.mq.send("q", b"a", message_id="1")
    assert world.reopen().send("q", b"a", message_id="1") == seq


def test_the_janitor_keeps_what_the_widest_window_still_covers(world: World) -> None:
    mq = world.mq
    mq.create_queue("narrow", dedup_window="1m")
    mq.create_queue("wide", dedup_window="1h")
    mq.send("narrow", b"a", message_id="1")
    mq.send("wide", b"a", message_id="1")
    world.later(60 * MINUTE - 1)
    assert len(world.rows("SELECT 1 FROM mqlite_dedup")) == 2
    world.later(1)
    assert world.rows("SELECT 1 FROM mqlite_dedup") == []


def test_the_janitor_prunes_also_when_every_window_is_off(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", dedup_window="1h")
    mq.send("q", b"a", message_id="1")
    mq.create_queue("q")
    world.later(MINUTE)
    assert world.rows("SELECT 1 FROM mqlite_dedup") == []


def test_the_janitor_prunes_many_records(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", dedup_window="1m")
    for chunk in range(10):
        mq.send_batch("q", messages(*((f"{chunk}-{n}", "a") for n in range(250))))
    assert counts(mq, "q") == {"active": 2500}
    world.later(MINUTE)
    assert world.rows("SELECT 1 FROM mqlite_dedup") == []

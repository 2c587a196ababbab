"""A repeated settlement succeeds if, and only if, it is the same request."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import mqlite
from contract.looks import MINUTE, SECOND, counts, one, peeked
from contract.ways import World
from mqlite.api import MQ
from mqlite.messages import Message

Settle = Callable[[Message], object]

VERBS: dict[str, Settle] = {
    "complete": lambda m: m.complete(),
    "abandon": lambda m: m.abandon(delay="10s"),
    "snooze": lambda m: m.abandon(delay="10s", snooze=True),
    "release": lambda m: m.release(),
    "reject": lambda m: m.reject("Reason", "description"),
    "defer": lambda m: m.defer(),
}
AFTER = {
    "complete": {},
    "abandon": {"scheduled": 1},
    "snooze": {"scheduled": 1},
    "release": {"active": 1},
    "reject": {"dead_lettered": 1},
    "defer": {"deferred": 1},
}
ARGUMENTS: dict[str, tuple[Settle, Settle]] = {
    "delay": (lambda m: m.abandon(delay="10s"), lambda m: m.abandon(delay="11s")),
    "no delay": (lambda m: m.abandon(delay="10s"), lambda m: m.abandon()),
    "reason": (lambda m: m.reject("a", "d"), lambda m: m.reject("b", "d")),
    "description": (lambda m: m.reject("a", "d"), lambda m: m.reject("a", "e")),
    "no description": (lambda m: m.reject("a", "d"), lambda m: m.reject("a")),
    "boundaries": (lambda m: m.reject("a", "bc"), lambda m: m.reject("ab", "c")),
}


@pytest.fixture
def held(mq: MQ) -> Message:
    mq.create_queue("q")
    mq.send("q", b"a")
    return one(mq, "q")


@pytest.mark.parametrize("first", VERBS)
@pytest.mark.parametrize("then", VERBS)
def test_only_the_same_verb_replays(mq: MQ, held: Message, first: str, then: str) -> None:
    VERBS[first](held)
    assert counts(mq, "q") == AFTER[first]
    if then == first:
        VERBS[then](held)
    else:
        with pytest.raises(mqlite.LockLost):
            VERBS[then](held)
    assert counts(mq, "q") == AFTER[first]


@pytest.mark.parametrize("changed", ARGUMENTS)
def test_changed_arguments_are_another_request(mq: MQ, held: Message, changed: str) -> None:
    original, different = ARGUMENTS[changed]
    original(held)
    before = mq.peek("q")
    with pytest.raises(mqlite.LockLost):
        different(held)
    assert mq.peek("q") == before
    original(held)


def test_an_empty_reason_and_the_default_one_are_the_same_request(mq: MQ, held: Message) -> None:
    held.reject()
    held.reject("AppRequested")
    held.reject("", "")
    with pytest.raises(mqlite.LockLost):
        held.reject("AppRequested", "with a description")
    assert counts(mq, "q") == {"dead_lettered": 1}


@pytest.mark.parametrize("verb", VERBS)
def test_a_replay_touches_nothing_even_after_redelivery(world: World, verb: str) -> None:
    mq = world.mq
    mq.create_queue("q")
    seq = mq.send("q", b"a")
    first = one(mq, "q")
    VERBS[verb](first)
    if verb in ("abandon", "snooze"):
        world.later(10 * SECOND)
        one(mq, "q")
    elif verb == "release":
        one(mq, "q")
    elif verb == "reject":
        mq.redrive("q")
        one(mq, "q")
    elif verb == "defer":
        mq.receive_deferred("q", [seq])
    before = mq.peek("q")
    VERBS[verb](first)
    assert mq.peek("q") == before


def test_another_message_with_the_same_token_does_not_match(mq: MQ, held: Message) -> None:
    other = mq.send("q", b"b")
    held.complete()
    with pytest.raises(mqlite.LockLost):
        mq.complete("q", other, held.lock_token)
    assert [slot.ok for slot in mq.complete_batch("q", [(other, held.lock_token)])] == [False]
    assert counts(mq, "q") == {"active": 1}


def test_the_same_request_on_another_queue_does_not_match(mq: MQ, held: Message) -> None:
    mq.create_queue("other")
    held.complete()
    with pytest.raises(mqlite.LockLost):
        mq.complete("other", *held.lease)
    assert [slot.ok for slot in mq.complete_batch("other", [held])] == [False]


def test_single_and_batch_completions_replay_each_other(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send_batch("q", [b"a", b"b"])
    first, second = mq.receive("q", max_messages=2)
    first.complete()
    assert [slot.ok for slot in mq.complete_batch("q", [first, second])] == [True, True]
    second.complete()


@pytest.mark.parametrize("verb", ["abandon", "snooze", "release", "reject", "defer"])
def test_a_batch_completion_does_not_replay_another_verb(mq: MQ, held: Message, verb: str) -> None:
    VERBS[verb](held)
    assert [slot.ok for slot in mq.complete_batch("q", [held])] == [False]
    assert counts(mq, "q") == AFTER[verb]


@pytest.mark.parametrize("verb", VERBS)
def test_a_receipt_lasts_30_minutes_and_a_replay_does_not_extend_it(
    world: World, verb: str
) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"a")
    message = one(mq, "q")
    VERBS[verb](message)
    world.clock.advance(30 * MINUTE - 1)
    VERBS[verb](message)
    world.clock.advance(1)
    with pytest.raises(mqlite.LockLost):
        VERBS[verb](message)


def test_expired_receipts_are_swept_and_live_ones_kept(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send_batch("q", [b"a", b"b"])
    first, second = mq.receive("q", max_messages=2)
    first.complete()
    world.clock.advance(SECOND)
    second.complete()
    world.later(30 * MINUTE - SECOND)
    assert len(world.rows("SELECT 1 FROM mqlite_receipts")) == 1
    second.complete()
    world.later(SECOND)
    assert world.rows("SELECT 1 FROM mqlite_receipts") == []


def test_receipts_survive_reopening(world: World) -> None:
    world.mq.create_queue("q")
    world.mq.send("q", b"a")
    message = one(world.mq, "q")
    message.reject("r")
    mq = world.reopen()
    mq.reject("q", *message.lease, reason="r")
    with pytest.raises(mqlite.LockLost):
        mq.reject("q", *message.lease, reason="other")


def test_a_refused_settlement_leaves_no_receipt(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    seq = mq.send("q", b"a")
    message = one(mq, "q")
    world.clock.advance(30 * SECOND)
    with pytest.raises(mqlite.LockLost):
        message.complete()
    world.clock.set(world.clock.now() - SECOND)
    message.complete()
    assert mq.peek("q", from_seq=seq) == []
    assert len(world.rows("SELECT 1 FROM mqlite_receipts")) == 1


def test_a_redelivery_and_its_own_settlement_do_not_touch_older_receipts(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    seq = mq.send("q", b"a")
    first = one(mq, "q")
    first.abandon()
    second = one(mq, "q")
    second.abandon()
    first.abandon()
    second.abandon()
    assert peeked(mq, "q", seq).delivery_count == 2
    assert counts(mq, "q") == {"active": 1}

"""What a join promises, in every way of holding a transaction."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import pytest

import mqlite

from .helpers import Undo, bodies, noticed, waiting_receiver
from .modes import Caller


def orders(mq: mqlite.Embedded) -> list[int]:
    with mq.transaction() as tx:
        return [number for (number,) in tx.execute("SELECT id FROM orders ORDER BY id")]


def test_commit_delivers_to_a_receiver_that_waits(mq: mqlite.Embedded, caller: Caller) -> None:
    receiver = waiting_receiver(mq)
    with caller.transaction():
        caller.order(1)
        mq.join(caller.handle).send("q", b"order 1")
    [message] = receiver.result()
    assert message.body == b"order 1"
    assert orders(mq) == [1]


def test_nothing_is_there_before_the_commit(
    mq: mqlite.Embedded, caller: Caller, counted: Counter[str]
) -> None:
    with caller.transaction():
        mq.join(caller.handle).send("q", b"x")
        assert bodies(mq) == []
        assert counted["enqueued"] == 0
    noticed(mq)
    assert bodies(mq) == [b"x"]
    assert counted["enqueued"] == 1


@pytest.mark.parametrize("joined_first", [False, True])
def test_rollback_leaves_nothing(
    mq: mqlite.Embedded, caller: Caller, counted: Counter[str], joined_first: bool
) -> None:
    with suppress(Undo), caller.transaction():
        if not joined_first:
            caller.order(1)
        mq.join(caller.handle).send("q", b"never")
        caller.order(2)
        raise Undo
    mq.send("q", b"later")
    noticed(mq)
    assert bodies(mq) == [b"later"]
    assert orders(mq) == []
    assert counted["enqueued"] == 1


def test_what_comes_after_a_transaction_is_not_in_it(mq: mqlite.Embedded, caller: Caller) -> None:
    with caller.transaction():
        mq.join(caller.handle).send("q", b"first")
    with suppress(Undo), caller.transaction():
        mq.join(caller.handle).send("q", b"never")
        raise Undo
    with caller.transaction():
        mq.join(caller.handle).send("q", b"second")
    assert bodies(mq) == [b"first", b"second"]


def test_an_operation_that_fails_undoes_only_itself(
    mq: mqlite.Embedded, caller: Caller, counted: Counter[str]
) -> None:
    mq.create_queue("dedup", dedup_window="1m")
    mq.create_queue("groups", ordering_mode="group_fifo")
    mq.send("dedup", b"a", message_id="1")
    noticed(mq)
    counted.clear()
    grouped = [mqlite.OutMessage(group_id="g"), mqlite.OutMessage()]
    with caller.transaction():
        caller.order(1)
        joined = mq.join(caller.handle)
        joined.send("q", b"before")
        with pytest.raises(mqlite.DedupConflict):
            joined.send("dedup", b"b", message_id="1")
        with pytest.raises(mqlite.GroupRequired):
            joined.send_batch("groups", grouped)
        with pytest.raises(mqlite.NotFound):
            joined.send("nowhere", b"x")
        with pytest.raises(mqlite.LockLost):
            joined.complete("q", 999, "0" * 32)
        with pytest.raises(mqlite.MessageTooLarge):
            joined.send("q", bytes(1024 * 1024 + 1))
        joined.send("q", b"after")
        caller.order(2)
    noticed(mq)
    assert bodies(mq) == [b"before", b"after"]
    assert bodies(mq, "groups") == []
    assert orders(mq) == [1, 2]
    assert counted["enqueued"] == 2


def test_a_nested_rollback_takes_only_its_part(
    mq: mqlite.Embedded, caller: Caller, counted: Counter[str]
) -> None:
    with caller.transaction():
        caller.order(1)
        joined = mq.join(caller.handle)
        joined.send("q", b"outer")
        with suppress(Undo), caller.nested():
            caller.order(2)
            joined.send("q", b"never")
            mq.join(caller.handle).send("q", b"never")
            raise Undo
        with caller.nested():
            caller.order(3)
            joined.send("q", b"inner")
            with suppress(Undo), caller.nested():
                mq.join(caller.handle).send("q", b"never")
                raise Undo
    noticed(mq)
    assert bodies(mq) == [b"outer", b"inner"]
    assert orders(mq) == [1, 3]
    assert counted["enqueued"] == 2


def test_a_nested_commit_is_undone_with_the_outer(
    mq: mqlite.Embedded, caller: Caller, counted: Counter[str]
) -> None:
    with suppress(Undo), caller.transaction():
        caller.order(1)
        with caller.nested():
            mq.join(caller.handle).send("q", b"never")
        raise Undo
    noticed(mq)
    assert bodies(mq) == []
    assert orders(mq) == []
    assert counted["enqueued"] == 0


def test_settlements_become_true_with_the_commit(mq: mqlite.Embedded, caller: Caller) -> None:
    mq.send_batch("q", [b"done", b"again", b"bad", b"later", b"unused", b"snooze", b"1", b"2"])
    cancelled = mq.send("q", b"cancel", at="+1h")
    held = mq.receive("q", max_messages=8)
    leases = [(message.seq_number, message.lock_token) for message in held]

    def settle() -> None:
        joined = mq.join(caller.handle)
        joined.complete("q", *leases[0])
        joined.abandon("q", *leases[1])
        joined.reject("q", *leases[2], reason="bad")
        joined.defer("q", *leases[3])
        joined.release("q", *leases[4])
        joined.abandon("q", *leases[5], delay="1h", snooze=True)
        assert [result.ok for result in joined.complete_batch("q", leases[6:])] == [True, True]
        joined.cancel("q", cancelled)

    def states() -> dict[str, int]:
        stats = mq.stats("q")
        names = ("active", "locked", "deferred", "scheduled", "dead_lettered")
        return {name: getattr(stats, name) for name in names if getattr(stats, name)}

    with suppress(Undo), caller.transaction():
        settle()
        raise Undo
    assert states() == {"locked": 8, "scheduled": 1}
    with caller.transaction():
        settle()
    assert states() == {"active": 2, "scheduled": 1, "deferred": 1, "dead_lettered": 1}


def test_a_settlement_wakes_who_waits_for_its_line(mq: mqlite.Embedded, caller: Caller) -> None:
    mq.create_queue("line", ordering_mode="strict_fifo", lock_duration="10m")
    mq.send_batch("line", [b"first", b"second"])
    [first] = mq.receive("line")
    receiver = waiting_receiver(mq, "line")
    with caller.transaction():
        mq.join(caller.handle).complete("line", first.seq_number, first.lock_token)
    [second] = receiver.result()
    assert second.body == b"second"

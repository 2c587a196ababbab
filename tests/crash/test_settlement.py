"""Locks, settlements and delivery counts after the death of their holder."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

import mqlite
from mqlite.clock import ManualClock

from .conftest import ROUNDS, reopened
from .killing import Child

MAX_DELIVERIES = 3
THREADS = 6
"""Each may have completed a message and not yet said so."""


def fill(path: Path, number: int) -> list[int]:
    with mqlite.open(str(path)) as mq:
        return mq.send_batch("q", [b"%d" % i for i in range(number)])


def test_no_lock_outlives_its_holder(database: Path, chance: random.Random) -> None:
    """One-hour leases; every body is there exactly once after every crash."""
    with mqlite.open(str(database)) as mq:
        mq.create_queue("q", lock_duration="1h", max_delivery_count=100)
    seqs = fill(database, 400)
    for _ in range(2 * ROUNDS):
        with Child("hold_locks", database) as child:
            child.hear(chance.randrange(16, 24))
            child.kill()
        assert len(child.said("claimed")) * 16 > 250
        with reopened(database) as mq:
            stats = mq.stats("q")
            assert (stats.locked, stats.active) == (0, 400)
            assert [m.seq_number for m in mq.peek("q", max_messages=1000)] == seqs


def test_every_orphaned_lock_is_reclaimed_at_once(database: Path) -> None:
    fill(database, 400)
    with Child("hold_locks", database, "with all locks") as child:
        child.hear_until_held()
        child.kill()
    with reopened(database) as mq:
        assert mq.stats("q").active == 400
        assert {m.delivery_count for m in mq.peek("q", max_messages=1000)} == {1}


def test_a_queue_that_keeps_leases_keeps_them_over_a_crash(database: Path) -> None:
    with mqlite.open(str(database)) as mq:
        mq.create_queue("q", lock_duration="1h", keep_leases=True)
    fill(database, 40)
    with Child("hold_locks", database, "with all locks") as child:
        child.hear_until_held()
        child.kill()
    with reopened(database) as mq:
        assert mq.stats("q").locked == 40
        until = max(message.locked_until_ms for message in mq.peek("q", max_messages=1000))
    with mqlite.open(str(database), clock=ManualClock(until)) as mq:
        mq.maintain()
        assert mq.stats("q").active == 40


@pytest.mark.parametrize("moment", ["", "COMMIT"])
def test_settlements_hold_and_deliveries_stay_within_their_bound(
    moment: str, database: Path, chance: random.Random
) -> None:
    """Several owners settle in every way and die; what each was told stays true."""
    with mqlite.open(str(database)) as mq:
        mq.create_queue("q", lock_duration="1h", max_delivery_count=MAX_DELIVERIES)
    left = set(fill(database, 3000))
    claims: Counter[int] = Counter()
    rejected: set[int] = set()
    for _ in range(2 * ROUNDS):
        with Child("settle_in_threads", database, moment) as child:
            if moment:
                child.hear_until_held()
            else:
                child.hear(chance.randrange(50, 800))
            child.kill()
        left -= {seq for (seq,) in child.said("completed")}
        rejected |= {seq for (seq,) in child.said("rejected")}
        claims.update(seq for seq, _ in child.said("claimed"))
        with reopened(database) as mq:
            _check(mq, left, rejected)
    assert max(claims.values()) <= MAX_DELIVERIES, "a message was delivered too often"
    assert rejected


def _check(mq: mqlite.Embedded, left: set[int], rejected: set[int]) -> None:
    assert mq.stats("q").locked == 0, "a lock is stranded"
    there = {message.seq_number: message for message in _everything(mq)}
    assert there.keys() <= left, "a completed message is back"
    lost = left - there.keys()
    assert len(lost) <= THREADS, "messages are lost that nobody completed"
    left -= lost  # completed, but killed before it could say so
    for seq, message in there.items():
        assert message.delivery_count <= MAX_DELIVERIES
        if seq in rejected:
            assert message.dead_letter_reason == "bad"
        elif message.state == "dead_lettered" and message.dead_letter_reason != "bad":
            assert message.dead_letter_reason == "MaxDeliveryCountExceeded"
            assert message.delivery_count == MAX_DELIVERIES
        elif message.state == "active":
            assert message.delivery_count < MAX_DELIVERIES


def _everything(mq: mqlite.Embedded) -> list[mqlite.MessageData]:
    found: list[mqlite.MessageData] = []
    while page := mq.peek(
        "q", from_seq=found[-1].seq_number + 1 if found else 0, max_messages=1000
    ):
        found += page
    return found

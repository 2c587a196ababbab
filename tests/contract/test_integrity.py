"""Many at once: every message to one consumer at a time, none lost, none changed."""

from __future__ import annotations

import hashlib
import random
import threading
from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

import pytest

import mqlite
from contract.looks import SECOND, bodies, counts, one
from contract.ways import World, together
from mqlite import OutMessage
from mqlite.api import MQ
from mqlite.messages import Message
from patience import start

MIB = 1024 * 1024


def drain(mq: MQ, queue: str = "q", size: int = 7) -> list[Message]:
    """Receive and complete until nothing is left."""
    taken: list[Message] = []
    while batch := mq.receive(queue, max_messages=size):
        assert all(slot.ok for slot in mq.complete_batch(queue, batch))
        taken += batch
    return taken


def test_competing_consumers_each_see_a_message_once(world: World) -> None:
    world.mq.create_queue("q")
    for chunk in range(4):
        world.mq.send_batch("q", [b"%d" % n for n in range(chunk * 100, chunk * 100 + 100)])
    taken = together(6, lambda _: bodies(drain(world.connect())))
    assert sorted((b for part in taken for b in part), key=int) == [b"%d" % n for n in range(400)]
    assert world.mq.stats("q").total == 0


def test_many_senders_lose_nothing_and_share_no_number(world: World) -> None:
    world.mq.create_queue("q")

    def send(sender: int) -> list[int]:
        mq = world.connect()
        return [mq.send("q", b"%d:%d" % (sender, n)) for n in range(40)]

    sent = [seq for part in together(8, send) for seq in part]
    assert sorted(sent) == list(range(1, 321))
    assert len({m.body for m in world.mq.peek("q", max_messages=1000)}) == 320


def test_groups_stay_in_order_under_competing_consumers(world: World) -> None:
    world.mq.create_queue("q")
    rng = random.Random(7)
    expected: dict[str, list[bytes]] = defaultdict(list)
    batch = []
    for number in range(240):
        group = rng.choice(["", "a", "b", "c", "d"])
        batch.append(OutMessage(body=b"%d" % number, group_id=group))
        expected[group].append(b"%d" % number)
    world.mq.send_batch("q", batch)
    log: list[tuple[str, bytes]] = []
    lock = threading.Lock()

    def consume(_: int) -> None:
        mq = world.connect()
        while world.mq.stats("q").total:
            for message in mq.receive("q", max_messages=5):
                with lock:
                    log.append((message.group_id, message.body))
                message.complete()

    together(6, consume)
    seen: dict[str, list[bytes]] = defaultdict(list)
    for group, body in log:
        seen[group].append(body)
    assert sorted(seen.pop(""), key=int) == expected.pop("")
    assert seen == expected


def test_equal_sends_at_once_collapse_into_one(world: World) -> None:
    world.mq.create_queue("q", dedup_window="1m")
    sent = together(8, lambda _: world.connect().send("q", b"a", message_id="1"))
    assert len(set(sent)) == 1
    assert counts(world.mq, "q") == {"active": 1}


def test_one_of_two_racing_settlements_wins_and_it_is_the_live_one(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", max_delivery_count=1000)
    mq.send("q", b"a")
    other = world.connect()
    for round_ in range(30):
        stale = one(mq, "q")
        world.later(30 * SECOND)
        live = one(mq, "q")

        def settle(index: int, stale: Message = stale, live: Message = live) -> bool:
            handle, token = (mq, stale) if index == 0 else (other, live)
            try:
                handle.abandon("q", *token.lease)
            except mqlite.LockLost:
                return False
            return True

        assert together(2, settle) == [False, True], round_
    assert counts(mq, "q") == {"active": 1}


class Delivery(NamedTuple):
    count: int
    claimed_at: int
    until: int
    token: str


@pytest.mark.parametrize("seed", [1, 2])
def test_consumers_that_misbehave_never_share_a_lease(world: World, seed: int) -> None:
    lease = 3 * SECOND
    world.mq.create_queue("q", lock_duration="3s", max_delivery_count=1000)
    world.mq.send_batch("q", [b"%d" % n for n in range(150)])
    deliveries: dict[int, list[Delivery]] = defaultdict(list)
    given_back: set[tuple[int, str]] = set()
    completed: dict[int, str] = {}
    lock = threading.Lock()

    def consume(index: int) -> None:
        mq, rng = world.connect(), random.Random(seed * 100 + index)
        while len(completed) < 150:
            for message in mq.receive("q", max_messages=rng.randint(1, 8)):
                until = message.locked_until_ms
                with lock:
                    deliveries[message.seq_number].append(
                        Delivery(message.delivery_count, until - lease, until, message.lock_token)
                    )
                choice = rng.random()
                try:
                    if choice < 0.25:
                        continue
                    if choice < 0.45:
                        with lock:
                            given_back.add(message.lease)
                        message.abandon()
                        continue
                    message.complete()
                except mqlite.LockLost:
                    with lock:
                        given_back.discard(message.lease)
                    continue
                with lock:
                    assert message.seq_number not in completed
                    completed[message.seq_number] = message.lock_token

    consumers = [start(consume, index) for index in range(6)]
    while not all(consumer.done() for consumer in consumers):
        world.later(SECOND // 4)
    for consumer in consumers:
        consumer.result()
    assert counts(world.mq, "q") == {}
    for seq, log in deliveries.items():
        log.sort()
        assert [delivery.count for delivery in log] == list(range(1, len(log) + 1))
        assert completed[seq] == log[-1].token
        for before, after in pairwise(log):
            if (seq, before.token) not in given_back:
                assert after.claimed_at >= before.until


def test_bodies_arrive_as_they_were_sent(world: World) -> None:
    rng = random.Random(3)
    world.mq.create_queue("q", max_delivery_count=100)
    sizes = [0, 1, 1023, 1024, 1025, *(rng.randrange(20_000) for _ in range(145))]
    sent = []
    for size in sizes:
        body = rng.randbytes(size)
        digest = hashlib.sha256(body).hexdigest()
        sent.append(OutMessage(body=body, properties={"digest": digest}))
    world.mq.send_batch("q", sent)

    def consume(index: int) -> list[int]:
        mq, mine = world.connect(), random.Random(index)
        done = []
        while world.mq.stats("q").total:
            for message in mq.receive("q", max_messages=5):
                assert hashlib.sha256(message.body).hexdigest() == message.properties["digest"]
                if mine.random() < 0.1:
                    message.abandon()
                else:
                    message.complete()
                    done.append(message.seq_number)
        return done

    done = [seq for part in together(4, consume) for seq in part]
    assert sorted(done) == list(range(1, 151))


def test_sequence_numbers_are_never_reused(world: World) -> None:
    world.mq.create_queue("q")
    last = world.mq.send_batch("q", [b""] * 10)[-1]
    drain(world.mq)
    world.owner.vacuum(full=True)
    after = world.mq.send("q", b"")
    assert after > last
    one(world.mq, "q").complete()
    assert world.reopen().send("q", b"") > after


def test_a_fan_out_stores_its_body_once(world: World) -> None:
    mq = world.mq
    for name in ("a", "b", "c"):
        mq.subscribe("t", name)
    body = b"x" * 65_536
    mq.send("t", body)
    mq.send("t", b"short")
    assert world.rows("SELECT length(body) FROM mqlite_payloads ORDER BY id") == [(65_536,), (5,)]
    assert world.rows("SELECT sum(length(body)), sum(body_size) FROM mqlite_messages") == [
        (0, 3 * (65_536 + 5))
    ]
    for name in ("a", "b"):
        assert [m.body for m in drain(mq, name)] == [body, b"short"]
        assert len(world.rows("SELECT 1 FROM mqlite_payloads")) == 2
    drain(mq, "c")
    assert world.rows("SELECT 1 FROM mqlite_payloads") == []


def test_a_short_body_of_one_delivery_is_in_the_row_and_a_long_one_apart(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"x" * 1024)
    mq.send("q", b"y" * 1025)
    assert world.rows("SELECT seq, length(body), body_size FROM mqlite_messages") == [
        (1, 1024, 1024),
        (2, 0, 1025),
    ]
    assert world.rows("SELECT length(body) FROM mqlite_payloads") == [(1025,)]
    drain(mq)
    assert world.rows("SELECT 1 FROM mqlite_payloads") == []


def test_a_redrive_across_queues_refers_to_the_same_payload(world: World) -> None:
    mq = world.mq
    mq.create_queue("a")
    mq.create_queue("b")
    mq.send("a", b"x" * 5000)
    before = world.rows("SELECT id FROM mqlite_payloads")
    one(mq, "a").reject()
    mq.redrive("a", target="b")
    assert world.rows("SELECT id FROM mqlite_payloads") == before
    assert one(mq, "b").body == b"x" * 5000


def test_a_suppressed_or_refused_send_stores_no_payload(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", dedup_window="1m")
    mq.send("q", b"x" * 5000, message_id="1")
    mq.send("q", b"x" * 5000, message_id="1")
    with pytest.raises(mqlite.DedupConflict):
        mq.send("q", b"y" * 5000, message_id="1")
    assert len(world.rows("SELECT 1 FROM mqlite_payloads")) == 1


def test_claiming_a_large_message_does_not_write_its_body_again(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"x" * MIB)
    wal = world.path.with_name(world.path.name + "-wal")
    before = wal.stat().st_size
    one(mq, "q")
    assert wal.stat().st_size - before < 64 * 1024


def test_drained_space_is_given_back(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    for _ in range(2):
        mq.send_batch("q", [b"x" * 4096] * 250)
    world.owner.vacuum()
    full = world.path.stat().st_size
    drain(mq, size=256)
    world.owner.vacuum()
    assert world.path.stat().st_size < full / 2
    assert world.rows("PRAGMA freelist_count")[0][0] <= 16

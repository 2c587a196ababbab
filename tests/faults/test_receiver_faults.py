"""Receivers and a real broker process: killed under load, cut off, slow, with another idea of the
time. Nothing is lost, nothing is counted as settled that was not, nobody works on unaware."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mqlite
from client.conftest import Connect
from faults.brokers import TOKEN, BrokerProcess, proxy
from mqlite.errors import LockLost, OutcomeUnknown
from mqlite.receiver import receivers, running
from patience import eventually
from receiver.driving import Consumer, end_all

HOUR_MS = 3_600_000
KILLS = 3
MESSAGES = 400


@pytest.fixture(autouse=True)
def nothing_stays(connect: Connect) -> Iterator[None]:
    """Ends the receivers of a test before their clients are closed."""
    yield
    end_all()


def test_a_broker_killed_under_load(
    broker: BrokerProcess, connect: Connect, database: Path
) -> None:
    handled: Counter[str] = Counter()

    async def handle(message: Any) -> None:
        handled[message.text] += 1

    with mqlite.connect(broker.url, token=TOKEN) as sender:
        sender.send_batch("q", [str(number) for number in range(MESSAGES)])
    consumer = Consumer(connect(broker.url), handle, "q", concurrency=4, prefetch=1)
    for kill in range(1, KILLS + 1):
        eventually(lambda kill=kill: len(handled) >= kill * MESSAGES // (KILLS + 2))
        broker.restart()
    eventually(lambda: consumer.counts.completed >= MESSAGES)
    assert consumer.stop()
    assert set(handled) == {str(number) for number in range(MESSAGES)}
    counts = consumer.counts
    assert counts.completed == MESSAGES
    assert counts.lost + counts.unsettled == handled.total() - MESSAGES
    broker.kill()
    with mqlite.open(str(database)) as mq:
        assert mq.stats("q").total == 0


@pytest.mark.parametrize("cut", [0, 20, 100_000], ids=["before", "in", "after"])
def test_a_connection_cut_around_the_answer_to_a_completion(
    broker: BrokerProcess, connect: Connect, cut: int
) -> None:
    with proxy(broker.url) as between:

        async def handle(message: Any) -> None:
            handled.append(message.text)
            between.cut = cut

        handled: list[str] = []
        mq = connect(between.url)
        mq.send("q", "work")
        consumer = Consumer(mq, handle, "q", wait=1)
        eventually(lambda: consumer.counts.completed == 1)
        assert consumer.stop()
        assert handled == ["work"]
        assert consumer.reports == []
        assert mq.stats("q").total == 0


def test_an_answer_delayed_past_the_lease_is_not_worked_on(
    broker: BrokerProcess, connect: Connect
) -> None:
    with proxy(broker.url) as between:

        async def handle(message: Any) -> None:
            handled.append((message.delivery_count, message.lost))

        handled: list[tuple[int, bool]] = []
        with mqlite.connect(broker.url, token=TOKEN) as sender:
            sender.send("short", "work")
            between.hold = hold = threading.Event()
            consumer = Consumer(connect(between.url), handle, "short", wait=1)
            eventually(lambda: sender.stats("short").locked == 1)
            eventually(lambda: sender.stats("short").active == 1)  # the lease has run out
            hold.set()
            eventually(lambda: consumer.counts.completed == 1)
            assert consumer.stop()
            assert sender.stats("short").total == 0
        assert handled == [(2, False)]
        assert consumer.errors == [LockLost]


def test_what_a_broken_off_poll_had_claimed_is_handed_back(
    broker: BrokerProcess, connect: Connect
) -> None:
    with proxy(broker.url) as between:

        async def handle(message: Any) -> None:
            handled.append(message.text)

        handled: list[str] = []
        with mqlite.connect(broker.url, token=TOKEN) as sender:
            sender.send("q", "work")
            between.hold = hold = threading.Event()
            consumer = Consumer(connect(between.url), handle, "q", wait=1)
            eventually(lambda: sender.stats("q").locked == 1)
            assert consumer.stop()
            hold.set()
            [message] = sender.peek("q")
        assert (message.state, message.delivery_count) == ("active", 0)
        assert consumer.counts.released == 1
        assert handled == []


@pytest.mark.parametrize("shift_ms", [-HOUR_MS, HOUR_MS])
def test_clocks_an_hour_apart(database: Path, connect: Connect, shift_ms: int) -> None:
    with BrokerProcess(database, shift_ms=shift_ms) as broker:

        async def handle(message: Any) -> None:
            await asyncio.sleep(1.2)  # three times what a lease lasts
            handled.append((message.delivery_count, message.lost))

        handled: list[tuple[int, bool]] = []
        mq = connect(broker.url)
        mq.send("short", "work")
        consumer = Consumer(mq, handle, "short")
        eventually(lambda: consumer.counts.completed == 1)
        assert consumer.stop()
        assert handled == [(1, False)]
        assert consumer.reports == []


def test_a_handler_is_told_while_the_broker_is_gone(
    broker: BrokerProcess, connect: Connect
) -> None:
    async def handle(message: Any) -> None:
        began.set()
        try:
            while not message.lost:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        finally:
            told.append(message.delivery_count)

    told: list[int] = []
    began = threading.Event()
    mq = connect(broker.url)
    mq.send("short", "work")
    consumer = Consumer(mq, handle, "short")
    assert began.wait(10)
    broker.kill()
    eventually(lambda: told == [1])
    assert consumer.counts.completed == 0
    eventually(lambda: LockLost in consumer.errors)
    consumer.receiver.abandon()
    consumer.stop()


def test_a_settlement_that_hangs_does_not_keep_a_receiver_from_ending(
    broker: BrokerProcess, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (receivers, running):
        monkeypatch.setattr(module, "HARD_STOP_MS", 100)
    hold = threading.Event()
    with proxy(broker.url) as between:

        async def handle(message: Any) -> None:
            between.hold = hold
            handled.set()

        handled = threading.Event()
        mq = connect(between.url)
        mq.send("q", "work")
        consumer = Consumer(mq, handle, "q", drain_timeout=0.2, wait=1)
        assert handled.wait(10)
        eventually(lambda: between.hold is None and consumer.receiver.running == 0)
        consumer.receiver.stop()
        consumer.stop()
        assert consumer.counts.unsettled == 1
        assert consumer.counts.completed == 0
        assert consumer.errors == [OutcomeUnknown]
        hold.set()


def test_a_broker_that_hangs_does_not_keep_a_receiver_from_being_abandoned(
    broker: BrokerProcess, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (receivers, running):
        monkeypatch.setattr(module, "HARD_STOP_MS", 100)

    async def handle(message: Any) -> None:
        handled.set()

    handled = threading.Event()
    mq = connect(broker.url)
    mq.send("q", "work")
    consumer = Consumer(mq, handle, "q")
    assert handled.wait(10)
    eventually(lambda: consumer.counts.completed == 1)
    broker.freeze()
    consumer.receiver.abandon()
    assert consumer.future.result(10)  # far sooner than a request gives up
    assert consumer.errors == [OutcomeUnknown]
    broker.kill()  # what still asks it is answered now

"""The clients and a real broker process: killed under load, cut off, slow, with another idea of
the time. Nothing is lost, nothing is reported that did not happen."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import mqlite
from client.conftest import Connect
from client.peer import PATIENCE
from faults.brokers import TOKEN, BrokerProcess, proxy
from mqlite.client import discipline
from mqlite.errors import LockLost, OutcomeUnknown, Unavailable
from patience import eventually, start

HOUR_MS = 3_600_000
KILLS = 3


class Ledger:
    """What became of each message, as its sender was told."""

    def __init__(self) -> None:
        self.acknowledged: set[str] = set()
        self.unknown: set[str] = set()
        self.refused: set[str] = set()
        self.stop = threading.Event()

    def until(self, more: int) -> None:
        """Wait until so many more are acknowledged."""
        goal = len(self.acknowledged) + more
        eventually(lambda: len(self.acknowledged) >= goal)

    def check(self, stored: Counter[str]) -> None:
        assert {body for body, times in stored.items() if times > 1} == set()
        assert self.acknowledged <= set(stored)
        assert not self.refused & set(stored)
        assert set(stored) <= self.acknowledged | self.unknown


@pytest.fixture
def connect(connect: Connect) -> Connect:
    """A busy machine starts brokers slowly."""
    return partial(connect, retry_for=PATIENCE)


def send_in_threads(url: str, ledger: Ledger) -> None:
    with mqlite.connect(url, token=TOKEN) as mq:

        def work(thread: int) -> None:
            number = 0
            while not ledger.stop.is_set():
                body = f"thread-{thread}-{number}"
                number += 1
                try:
                    mq.send("q", body)
                    ledger.acknowledged.add(body)
                except OutcomeUnknown:
                    ledger.unknown.add(body)
                except Unavailable:
                    ledger.refused.add(body)

        for sender in [start(work, thread) for thread in range(4)]:
            sender.result(60)


def send_in_tasks(url: str, ledger: Ledger) -> None:
    async def main() -> None:
        async with await mqlite.connect_async(url, token=TOKEN) as mq:

            async def work(task: int) -> None:
                number = 0
                while not ledger.stop.is_set():
                    body = f"task-{task}-{number}"
                    number += 1
                    try:
                        await mq.send("q", body)
                        ledger.acknowledged.add(body)
                    except OutcomeUnknown:
                        ledger.unknown.add(body)
                    except Unavailable:
                        ledger.refused.add(body)

            await asyncio.gather(*map(work, range(16)))

    asyncio.run(main())


@pytest.mark.parametrize("send", [send_in_threads, send_in_tasks])
def test_sends_while_the_broker_is_killed(
    broker: BrokerProcess, send: Callable[[str, Ledger], None]
) -> None:
    ledger = Ledger()
    sending = start(send, broker.url, ledger)
    for _ in range(KILLS):
        ledger.until(50)
        broker.kill()
        broker.start()
    ledger.until(50)
    ledger.stop.set()
    sending.result(60)
    stored: Counter[str] = Counter()
    with mqlite.connect(broker.url, token=TOKEN) as mq:
        while messages := mq.receive("q", max_messages=256, mode="receive_and_delete"):
            stored.update(message.text for message in messages)
    ledger.check(stored)
    assert ledger.unknown  # a kill that nobody noticed proves nothing


def test_settlements_while_the_broker_is_killed(broker: BrokerProcess, connect: Connect) -> None:
    """What was reported as completed never comes again, and what was not is there or said to
    be unknown; everything comes."""
    mq = connect(broker.url)
    number = 600
    for first in range(0, number, 200):
        mq.send_batch("q", [str(n) for n in range(first, first + 200)])
    completed: set[str] = set()
    unknown: set[str] = set()
    delivered: set[str] = set()
    again: list[str] = []

    def work() -> None:
        idle = 0
        while idle < 2:
            before = set(completed)
            try:
                messages = mq.receive("q", max_messages=5)
            except (Unavailable, OutcomeUnknown):
                continue
            idle = 0 if messages else idle + 1
            for message in messages:
                delivered.add(message.text)
                if message.text in before:
                    again.append(message.text)
                try:
                    message.complete()
                    completed.add(message.text)
                except OutcomeUnknown:
                    unknown.add(message.text)
                except (LockLost, Unavailable):
                    continue

    consumers = [start(work) for _ in range(4)]
    for goal in (100, 250):
        eventually(lambda goal=goal: len(completed) >= goal)  # type: ignore[misc]
        broker.restart()
    for consumer in consumers:
        consumer.result(60)
    broker.restart()  # what was claimed by an answer that was lost is free again
    work()
    assert again == []
    assert delivered - completed <= unknown
    assert delivered == {str(n) for n in range(number)}
    assert mq.stats("q").total == 0


@pytest.mark.parametrize("cut", [0, 30, -5])
def test_an_answer_cut_off_by_the_network(
    broker: BrokerProcess, connect: Connect, cut: int
) -> None:
    with proxy(broker.url) as between:
        mq = connect(between.url)
        between.cut = cut
        with pytest.raises(OutcomeUnknown):
            mq.send("q", "a")
        assert mq.stats("q").active == 1
        between.cut = cut
        [message] = mq.receive("q", wait="5s")
        assert (message.text, message.delivery_count) == ("a", 1)
        between.cut = cut
        message.complete()
        assert mq.stats("q").total == 0


def test_receive_and_delete_survives_a_lost_answer(broker: BrokerProcess, connect: Connect) -> None:
    with proxy(broker.url) as between:
        mq = connect(between.url)
        mq.send_batch("q", ["a", "b"])
        between.cut = 0
        messages = mq.receive("q", max_messages=2, mode="receive_and_delete")
        assert [message.text for message in messages] == ["a", "b"]


def test_an_answer_delayed_past_the_lease(broker: BrokerProcess, connect: Connect) -> None:
    """The message that comes too late says so, and settles nothing."""
    with proxy(broker.url) as between, mqlite.connect(broker.url, token=TOKEN) as direct:
        mq = connect(between.url)
        mq.send("short", "a")
        release = between.hold = threading.Event()
        late = start(mq.receive, "short")
        eventually(lambda: direct.stats("short").locked == 1)
        [again] = direct.receive("short", wait="10s")
        again.complete()
        release.set()
        [message] = late.result(30)
        assert message.lease_deadline < mq.clock.elapsed() / 1000
        with pytest.raises(LockLost):
            message.complete()


@pytest.mark.parametrize("shift_ms", [HOUR_MS, -HOUR_MS])
def test_clocks_an_hour_apart(database: Path, connect: Connect, shift_ms: int) -> None:
    with BrokerProcess(database, shift_ms=shift_ms) as broker:
        mq = connect(broker.url)
        mq.create_queue("minute", lock_duration="60s")
        mq.send("minute", "a", ttl="1m")
        before = mq.clock.elapsed() / 1000
        [message] = mq.receive("minute", wait="5s")
        after = mq.clock.elapsed() / 1000
        assert before < message.lease_deadline <= after + 60
        assert message.lease_deadline > before + 50
        renewed = message.renew()
        assert before + 50 < renewed.lease_deadline <= after + 120
        message.complete()
        with pytest.raises(LockLost):
            message.reject()


def test_a_long_poll_rides_out_a_restart(
    broker: BrokerProcess, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discipline, "ATTEMPTS", 1000)  # a busy machine starts brokers slowly
    mq = connect(broker.url)
    poll = start(mq.receive, "q", wait="20s")
    with mqlite.connect(broker.url, token=TOKEN) as other:
        eventually(lambda: other.stats("q").total == 0)
    broker.restart()
    with mqlite.connect(broker.url, token=TOKEN) as other:
        other.send("q", "a")
    [message] = poll.result(60)
    assert message.text == "a"

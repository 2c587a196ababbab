"""How many slots a claim is for: over HTTP it waits a moment for as many as may be taken."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import mqlite
from client import stub
from mqlite.receiver import running
from mqlite.testing import open_memory
from patience import PATIENCE_S, eventually, start

FOREVER_S = 10 * PATIENCE_S


class Plenty:
    """A broker with more messages than are asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        """For how many messages each Receive was."""
        self._handed_out = 0

    def __call__(self, method: str, body: dict[str, Any]) -> stub.Answer:
        if method == "Receive":
            self.asked.append(body["max_messages"])
            return 200, {"messages": [self._next() for _ in range(body["max_messages"])]}
        if method == "CompleteBatch":
            settled = [{"seq_number": each["seq_number"], "ok": True} for each in body["messages"]]
            return 200, {"results": settled}
        return 200, {"ok": True}

    def _next(self) -> dict[str, Any]:
        self._handed_out += 1
        lease = {"lock_token": "t", "locked_until_ms": 2**42, "lease_ms": 600_000}
        return {"seq_number": self._handed_out, **lease}


class Desk:
    """Handlers that end when the test says so, in the order in which they began."""

    def __init__(self) -> None:
        self._all = threading.Event()
        self._ends: list[threading.Event] = []

    def handle(self, message: mqlite.Delivery) -> None:
        end = threading.Event()
        self._ends.append(end)
        while not (end.is_set() or self._all.is_set()):
            end.wait(0.01)

    @property
    def began(self) -> int:
        return len(self._ends)

    def end(self, *numbers: int) -> None:
        for number in numbers:
            self._ends[number - 1].set()

    def end_all(self) -> None:
        self._all.set()


@contextmanager
def handling(mq: Any, **options: Any) -> Iterator[tuple[Desk, mqlite.Receiver]]:
    """A running receiver of `q`, which stops with the block and has nothing to report."""
    reports: list[BaseException] = []
    desk = Desk()
    receiver = mq.receiver("q", on_error=lambda error, message: reports.append(error), **options)
    run = start(receiver.run, desk.handle)
    try:
        yield desk, receiver
    finally:
        receiver.stop()
        desk.end_all()
    assert run.result() is True
    assert reports == []


@pytest.fixture
def patiently(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim over HTTP waits for its slots until they are free."""
    monkeypatch.setattr(running, "GATHER_SECONDS", FOREVER_S)


@pytest.mark.parametrize(("prefetch", "ending"), [(4, 4), (3, 2)])
@pytest.mark.usefixtures("patiently")
def test_slots_that_become_free_together_are_claimed_together(prefetch: int, ending: int) -> None:
    broker = Plenty()
    with (
        stub.serving(broker) as served,
        mqlite.connect(served.url) as mq,
        handling(mq, concurrency=4, prefetch=prefetch) as (desk, receiver),
    ):
        eventually(lambda: desk.began == prefetch)
        desk.end(*range(1, ending))
        eventually(lambda: receiver.counts.completed == ending - 1)
        desk.end(ending)
        eventually(lambda: desk.began == 2 * prefetch)
        assert broker.asked == [prefetch, prefetch]


def test_a_handler_that_takes_long_holds_up_no_claim() -> None:
    broker = Plenty()
    with (
        stub.serving(broker) as served,
        mqlite.connect(served.url) as mq,
        handling(mq, concurrency=2) as (desk, _),
    ):
        eventually(lambda: desk.began == 2)
        desk.end(1)
        eventually(lambda: desk.began == 3)
        assert broker.asked == [2, 1]


@pytest.mark.usefixtures("patiently")
def test_a_claim_that_waits_for_its_slots_is_stopped_at_once() -> None:
    broker = Plenty()
    with (
        stub.serving(broker) as served,
        mqlite.connect(served.url) as mq,
        handling(mq, concurrency=2) as (desk, receiver),
    ):
        eventually(lambda: desk.began == 2)
        desk.end(1)
        eventually(lambda: receiver.counts.completed == 1)
        receiver.stop()
        eventually(lambda: "mqlite claims q" not in {each.name for each in threading.enumerate()})
        assert receiver.running == 1
    assert broker.asked == [2]


@pytest.mark.usefixtures("patiently")
def test_a_claim_in_the_same_process_does_not_wait() -> None:
    with open_memory() as mq:
        mq.create_queue("q")
        mq.send_batch("q", ["work"] * 3)
        with handling(mq, concurrency=2) as (desk, _):
            eventually(lambda: desk.began == 2)
            desk.end(1)
            eventually(lambda: desk.began == 3)

"""Signals and forks: who may run a receiver, and who stops it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import mqlite
from forking import forks
from mqlite import WrongProcess
from mqlite.testing import open_memory
from patience import eventually, start

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are sent by os.kill")


@pytest.fixture
def mq() -> Any:
    with open_memory() as mq:
        mq.create_queue("q")
        yield mq


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_drains_and_what_handled_it_before_does_so_again(
    mq: mqlite.Embedded, number: int
) -> None:
    def handle(message: mqlite.Delivery) -> None:
        os.kill(os.getpid(), number)
        drained.wait(1)  # the signal arrives while it runs

    drained = threading.Event()
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    mq.send_batch("q", ["one", "two"])
    receiver = mq.receiver("q")
    assert receiver.run(handle) is True
    assert receiver.counts.completed == 1
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_second_signal_abandons(mq: mqlite.Embedded) -> None:
    def handle(message: mqlite.Delivery) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        eventually(lambda: mq.core.store.waiters.waiting(1) == 0)
        os.kill(os.getpid(), signal.SIGINT)
        go_on.wait(10)

    go_on = threading.Event()
    mq.send("q", "work")
    assert mq.receiver("q").run(handle) is False
    go_on.set()
    assert mq.peek("q")[0].delivery_count == 0


def test_an_event_loop_drains_if_asked_to() -> None:
    async def handle(message: mqlite.AsyncDelivery) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.05)

    async def main() -> None:
        async with await mqlite.open_async(":memory:") as mq:
            await mq.create_queue("q")
            await mq.send_batch("q", ["one", "two"])
            receiver = mq.receiver("q")
            assert await receiver.run(handle, handle_signals=True)
            assert receiver.counts.completed == 1

    before = signal.getsignal(signal.SIGTERM)
    asyncio.run(main())
    assert signal.getsignal(signal.SIGTERM) == before


def test_other_threads_and_whoever_declines_leave_signals_alone(mq: mqlite.Embedded) -> None:
    def look(message: mqlite.Delivery) -> None:
        seen.append(signal.getsignal(signal.SIGINT))
        receiver.stop()

    seen: list[Any] = []
    before = signal.getsignal(signal.SIGINT)
    mq.send_batch("q", ["one", "two"])
    receiver = mq.receiver("q")
    start(receiver.run, look).result(10)
    receiver = mq.receiver("q")
    receiver.run(look, handle_signals=False)
    assert seen == [before, before]


def test_an_interrupt_that_is_not_handled_hands_back(mq: mqlite.Embedded) -> None:
    def handle(message: mqlite.Delivery) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        go_on.wait(10)

    go_on = threading.Event()
    mq.send("q", "work")
    with pytest.raises(KeyboardInterrupt):
        mq.receiver("q").run(handle, handle_signals=False)
    go_on.set()
    assert mq.peek("q")[0].delivery_count == 0


def in_child(work: Callable[[], object]) -> int:
    """The exit code of a forked child that does this: 0 if it answers True."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() is True else 3)
        except BaseException:
            os._exit(4)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@forks
def test_a_receiver_is_of_no_use_in_a_forked_child(mq: mqlite.Embedded) -> None:
    def refused() -> bool:
        for use in (lambda: receiver.run(print), receiver.stop, receiver.abandon):
            with pytest.raises(WrongProcess):
                use()
        return True

    receiver = mq.receiver("q")
    assert in_child(refused) == 0


@forks
def test_a_queue_of_the_parent_is_refused_in_a_forked_child(mq: mqlite.Embedded) -> None:
    def refused() -> bool:
        with pytest.raises(WrongProcess):
            mq.receiver("q", on_error=lambda *_: None).run(print)
        return True

    assert in_child(refused) == 0


@forks
def test_a_child_forked_by_a_handler_dies_of_a_signal(mq: mqlite.Embedded) -> None:
    """It inherits the signal handlers, and would otherwise ignore them."""

    def handle(message: mqlite.Delivery) -> None:
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(theirs, b"!")
            for _ in range(3000):
                time.sleep(0.01)  # a signal just before a longer one would be slept over
            os._exit(5)
        # Python drops the signals of a child that has not settled in.
        os.read(ours, 1)
        os.close(ours)
        os.close(theirs)
        os.kill(child, signal.SIGTERM)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        receiver.stop()

    codes: list[int] = []
    mq.send("q", "work")
    receiver = mq.receiver("q")
    receiver.run(handle)
    assert codes == [-signal.SIGTERM]


def test_a_receiver_runs_in_a_spawned_process(tmp_path: Any) -> None:
    """As `multiprocessing` does it everywhere: the handler is found by its import."""
    import multiprocessing

    database = str(tmp_path / "q.db")
    with mqlite.open(database) as mq:
        mq.create_queue("q")
        mq.send("q", "work")
    process = multiprocessing.get_context("spawn").Process(target=consume_one, args=(database,))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    with mqlite.open(database) as mq:
        assert mq.stats("q").total == 0


def consume_one(database: str) -> None:
    with mqlite.open(database) as mq:
        receiver = mq.receiver("q")
        receiver.run(lambda message: receiver.stop())

"""What `mqlite.testing` gives to tests."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import mqlite
from mqlite import InvalidArgument, LockLost, Snooze, Workers
from mqlite.testing import (
    ManualClock,
    drain,
    drain_async,
    later,
    work,
    work_async,
)
from mqlite.testing.fixtures import async_mq, mq, mq_clock

__all__ = ["async_mq", "mq", "mq_clock"]


def test_handlers_run_here_and_one_after_the_other(mq: mqlite.Embedded) -> None:
    def handle(message: mqlite.Delivery) -> None:
        seen.append((message.text, threading.current_thread()))

    seen: list[Any] = []
    mq.create_queue("q")
    mq.send_batch("q", ["one", "two"])
    assert drain(mq, "q", handle).completed == 2
    assert seen == [("one", threading.main_thread()), ("two", threading.main_thread())]


def test_time_moves_when_told(mq: mqlite.Embedded, mq_clock: ManualClock) -> None:
    seen: list[str] = []
    mq.create_queue("q")
    mq.send("q", "later", at="1h")
    before = mq_clock.now()
    later(mq, "59m")
    assert drain(mq, "q", print).completed == 0
    later(mq, "1m")
    assert drain(mq, "q", lambda message: seen.append(message.text)).completed == 1
    assert mq_clock.now() - before == 3_600_000


def test_what_is_due_at_once_comes_again_until_it_is_dead_lettered(mq: mqlite.Embedded) -> None:
    mq.create_queue("q", max_delivery_count=3)
    mq.send("q", "poison")
    reports: list[Any] = []
    counts = drain(mq, "q", lambda message: 1 / 0, on_error=lambda *r: reports.append(r))
    assert counts.abandoned == 3
    assert mq.stats("q").dead_lettered == 1
    assert [type(error) for error, _ in reports] == [ZeroDivisionError] * 3


def test_outcomes_that_wait_are_left_for_later(mq: mqlite.Embedded) -> None:
    mq.create_queue("q")
    mq.send("q", "again")
    assert drain(mq, "q", lambda message: Snooze("5m")).snoozed == 1
    later(mq, "5m")
    assert drain(mq, "q", lambda message: message.complete()).completed == 1


def test_a_handler_can_take_too_long(mq: mqlite.Embedded) -> None:
    def slow(message: mqlite.Delivery) -> None:
        mq.pause_queue("q")
        later(mq, "31s")
        assert message.lost
        with pytest.raises(LockLost, match="no longer locked for this handler"):
            message.complete()

    mq.create_queue("q", lock_duration="30s")
    mq.send("q", "work")
    assert drain(mq, "q", slow, on_error=lambda *_: None).lost == 1
    assert mq.stats("q").active == 1


def test_coroutine_functions(async_mq: mqlite.AsyncEmbedded) -> None:
    async def main() -> None:
        async def handle(message: mqlite.AsyncDelivery) -> None:
            await async_mq.send("done", message.text)

        for queue in ("q", "done"):
            await async_mq.create_queue(queue)
        await async_mq.send("q", "work")
        assert (await drain_async(async_mq, "q", handle)).completed == 1
        assert (await drain_async(async_mq, "done", lambda message: None)).completed == 1

    asyncio.run(main())


def test_a_coroutine_function_is_refused_by_the_sync_helpers(mq: mqlite.Embedded) -> None:
    async def handle(message: Any) -> None:
        pass

    mq.create_queue("q")
    with pytest.raises(InvalidArgument, match="_async"):
        drain(mq, "q", handle)


def test_workers_are_worked_until_nothing_is_due(mq: mqlite.Embedded) -> None:
    for queue in ("a", "b"):
        mq.create_queue(queue)

    @mq.worker("a")
    def on_a(message: mqlite.Delivery) -> None:
        if message.text != "3":
            mq.send("b", message.text)

    @mq.worker("b")
    def on_b(message: mqlite.Delivery) -> None:
        mq.send("a", str(int(message.text) + 1))

    mq.send("a", "1")
    counts = work(mq)
    assert (counts["a"].completed, counts["b"].completed) == (3, 2)


def test_workers_of_a_registry(mq: mqlite.Embedded, async_mq: mqlite.AsyncEmbedded) -> None:
    workers = Workers()

    @workers.worker("q")
    async def handle(message: mqlite.AsyncDelivery) -> None:
        await message.complete()

    mq.create_queue("q")
    mq.send("q", "work")
    assert asyncio.run(work_async(async_mq, workers))["q"].completed == 1


def test_there_have_to_be_workers(mq: mqlite.Embedded, async_mq: mqlite.AsyncEmbedded) -> None:
    mq.worker("q")(print)
    with pytest.raises(InvalidArgument, match="there are no workers"):
        work(mq, Workers())
    with pytest.raises(InvalidArgument, match="there are no workers"):
        asyncio.run(work_async(async_mq))


def test_a_queue_with_a_clock_of_its_own_is_refused() -> None:
    with mqlite.open(":memory:") as mq, pytest.raises(InvalidArgument, match="ManualClock"):
        later(mq, "1h")


def test_nothing_is_loaded_for_it_in_production() -> None:
    program = (
        "import sys, mqlite.testing; assert 'pytest' not in sys.modules;"
        "import mqlite.receiver.workers; assert 'pydantic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_fixtures_work_in_a_project_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["mqlite.testing.fixtures"]\n')
    (tmp_path / "test_it.py").write_text(
        "from mqlite.testing import drain, later\n"
        "def test_it(mq, mq_clock, async_mq):\n"
        "    mq.create_queue('q'); mq.send('q', 'x', at='1m'); later(mq, '1m')\n"
        "    assert drain(mq, 'q', print).completed == 1\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    subprocess.run(command, check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("order", [SystemExit, KeyboardInterrupt])
def test_a_handler_that_wants_to_exit_abandons_its_message(
    mq: mqlite.Embedded, async_mq: mqlite.AsyncEmbedded, order: type[BaseException]
) -> None:
    def handle(message: Any) -> None:
        raise order

    async def handle_async(message: Any) -> None:
        raise order

    mq.create_queue("q")
    mq.send("q", "work")
    with pytest.raises(order):
        drain(mq, "q", handle)
    with pytest.raises(order):
        asyncio.run(drain_async(async_mq, "q", handle_async))
    [message] = mq.peek("q")
    assert (message.state, message.failure_count) == ("active", 2)

"""What may be a handler, what its answer stands for, and what runs it."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any

import pytest

import mqlite
from mqlite import (
    Abandon,
    Complete,
    Defer,
    InvalidArgument,
    LockLost,
    Outcome,
    Reject,
    Snooze,
    Unavailable,
)
from mqlite.testing import drain, drain_async
from mqlite.testing.fixtures import async_mq, mq, mq_clock
from patience import eventually, start

__all__ = ["async_mq", "mq", "mq_clock"]


@pytest.fixture(autouse=True)
def queue(mq: mqlite.Embedded) -> None:
    mq.create_queue("q", max_delivery_count=2)
    mq.send("q", "1")


def generator(message: Any) -> Iterator[None]:
    yield


async def async_generator(message: Any) -> AsyncIterator[None]:
    yield


async def process(message: Any) -> None:
    pass


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (None, {}, "handler must be a function, got NoneType"),
    ("handle", {}, "handler must be a function, got str"),
    (5, {}, "handler must be a function, got int"),
    (generator, {}, "must not be a generator"),
    (async_generator, {}, "must not be a generator"),
    (lambda: None, {}, "handler must take the message"),
    (lambda message, other: None, {}, "handler must take the message"),
    (lambda message, *, other: None, {}, "handler must take the message"),
    (lambda: None, {"type": int}, "handler must take the value"),
    (lambda value, message, other: None, {"type": int}, "handler must take the value"),
]


@pytest.mark.parametrize(("handler", "options", "complaint"), REFUSED)
def test_what_cannot_handle_any_message_is_refused_before_one_is_claimed(
    mq: mqlite.Embedded, handler: Any, options: Any, complaint: str
) -> None:
    with pytest.raises(InvalidArgument, match=complaint):
        mqlite.Workers().worker("q", **options)(handler)
    with pytest.raises(InvalidArgument, match=complaint):
        mq.receiver("q", **options).run(handler)
    [message] = mq.peek("q")
    assert (message.state, message.delivery_count) == ("active", 0)


@pytest.mark.parametrize("handler", [lambda *all: None, lambda message, n=1: None, print, str])
def test_what_can_be_called_with_a_message_is_a_handler(
    mq: mqlite.Embedded, handler: Callable[..., Any]
) -> None:
    assert drain(mq, "q", handler).completed == 1


@pytest.mark.parametrize("unfinished", [generator, async_generator, process])
def test_work_that_was_only_promised_is_not_done(
    mq: mqlite.Embedded, async_mq: mqlite.AsyncEmbedded, unfinished: Callable[[Any], Any]
) -> None:
    async def handle(message: Any) -> Any:
        return unfinished(message)

    reports: list[BaseException] = []
    mq.create_queue("tasks", max_delivery_count=1)
    mq.send("tasks", "2")
    options: Any = {"on_error": lambda error, message: reports.append(error)}
    counts = drain(mq, "q", lambda message: unfinished(message), **options)
    assert (counts.completed, counts.abandoned) == (0, 2)
    counts = asyncio.run(drain_async(async_mq, "tasks", handle, **options))
    assert (counts.completed, counts.abandoned) == (0, 1)
    assert [type(error) for error in reports] == [InvalidArgument] * 3
    kind = "coroutine|generator|async_generator"
    expected = rf"the answer of the handler is of type ({kind}), and nobody awaits it"
    assert re.match(expected, str(reports[0]))


class NotNow(Snooze):
    def __init__(self) -> None:
        super().__init__("1h")


class Later(Abandon):
    def __init__(self) -> None:
        super().__init__("1h")


class Careless(Reject):
    def __init__(self) -> None:
        pass


class Aside(Defer):
    pass


@pytest.mark.parametrize(
    ("outcome", "counted", "state"),
    [
        (NotNow(), "snoozed", "scheduled"),
        (Later(), "abandoned", "scheduled"),
        (Careless(), "rejected", "dead_lettered"),
        (Aside(), "deferred", "deferred"),
    ],
)
def test_an_outcome_of_ones_own_is_what_it_derives_from(
    mq: mqlite.Embedded, outcome: Outcome, counted: str, state: str
) -> None:
    def handle(message: Any) -> None:
        raise outcome

    assert drain(mq, "q", handle) == mqlite.Counts(**{counted: 1})
    assert mq.peek("q")[0].state == state


def test_a_message_whose_handler_cancels_its_task_is_dead_lettered_in_the_end(
    mq: mqlite.Embedded, async_mq: mqlite.AsyncEmbedded
) -> None:
    async def handle(message: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        if message.delivery_count >= 5:  # without a bound it would go on for ever
            receiver.stop()
        await asyncio.sleep(0)

    async def main() -> None:
        running = asyncio.ensure_future(receiver.run(handle))
        while not (mq.stats("q").dead_lettered or running.done()):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        receiver.stop()
        await running

    receiver = async_mq.receiver("q")
    asyncio.run(asyncio.wait_for(main(), 20))
    assert receiver.counts == mqlite.Counts(abandoned=2)


def test_a_loop_that_runs_tasks_at_once(
    mq: mqlite.Embedded, async_mq: mqlite.AsyncEmbedded
) -> None:
    """As with `asyncio.eager_task_factory`: a handler can have ended before its task is known."""

    def eager(
        loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any
    ) -> Any:
        name = getattr(work, "__qualname__", "")
        if not name.endswith("Tasks._call"):
            return asyncio.Task(work, loop=loop, **options)
        ended = loop.create_future()
        with pytest.raises(StopIteration):
            work.send(None)
        ended.set_result(None)
        return ended

    async def handle(message: Any) -> None:
        receiver.stop()

    async def main() -> bool:
        asyncio.get_running_loop().set_task_factory(eager)
        return await receiver.run(handle)

    receiver = async_mq.receiver("q", drain_timeout=1)
    assert asyncio.run(main())
    assert receiver.counts == mqlite.Counts(completed=1)


def test_a_system_short_of_threads_is_served_by_those_it_grants(
    mq: mqlite.Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if thread.name.startswith("mqlite handler") and thread.name != "mqlite handler 1":
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    mq.send_batch("q", ["more"] * 20)
    receiver = mq.receiver("q", concurrency=8)
    running = start(receiver.run, lambda message: None)
    eventually(lambda: receiver.counts.completed == 21)
    receiver.stop()
    assert running.result(10)


def test_a_system_without_a_thread_ends_the_run_and_hands_back(
    mq: mqlite.Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if thread.name.startswith("mqlite handler"):
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    receiver = mq.receiver("q", on_error=lambda error, message: None)
    with pytest.raises(RuntimeError, match="can't start"):
        receiver.run(lambda message: None)
    [message] = mq.peek("q")
    assert (message.state, message.delivery_count) == ("active", 0)


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_thread_of_the_handlers_settles_is_waited_for(
    mq: mqlite.Embedded, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    class Returned(Complete):
        def __init__(self) -> None:
            super().__init__()
            returned.set()

    def complete_later(*held: Any) -> None:
        begun.set()
        assert returned.wait(10)
        if fails:
            raise Unavailable("not now", reason="busy")
        complete(*held)

    def settle(message: Any) -> None:
        with suppress(Unavailable):
            message.complete()

    def handle(message: Any) -> type[Outcome]:
        threading.Thread(target=settle, args=[message]).start()
        assert begun.wait(10)
        return Returned

    returned, begun = threading.Event(), threading.Event()
    complete = mq.complete
    monkeypatch.setattr(mq, "complete", complete_later)
    receiver = mq.receiver("q")
    running = start(receiver.run, handle)
    eventually(lambda: not mq.stats("q").total)
    receiver.stop()
    assert running.result(10)
    assert receiver.counts == mqlite.Counts(completed=1)


def test_a_lease_that_a_handler_finds_lost_is_counted(mq: mqlite.Embedded) -> None:
    def handle(message: Any) -> None:
        receiver.stop()
        mq.defer(message.queue, *message.lease)  # as somebody else would
        with pytest.raises(LockLost):
            message.complete()
        assert message.lost

    reports: list[BaseException] = []
    receiver = mq.receiver("q", on_error=lambda error, message: reports.append(error))
    assert receiver.run(handle)
    assert receiver.counts == mqlite.Counts(lost=1)
    assert [type(error) for error in reports] == [LockLost]


def test_a_log_that_fails_stops_nothing(
    mq: mqlite.Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disk_full(record: logging.LogRecord) -> bool:
        raise OSError("disk full")

    def handle(message: Any) -> None:
        raise ValueError("no good")

    logger = logging.getLogger("mqlite.receiver")
    monkeypatch.setattr(logger, "filters", [disk_full])
    receiver = mq.receiver("q", drain_timeout=0)
    running = start(receiver.run, handle)
    eventually(lambda: mq.stats("q").dead_lettered == 1)
    receiver.stop()
    assert running.result(10)
    assert receiver.counts == mqlite.Counts(abandoned=2)

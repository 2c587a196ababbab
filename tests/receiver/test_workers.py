"""Handlers declared where they are written, and run together."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import mqlite
from contract.ways import Blocking, World
from mqlite import InvalidArgument, NotFound, Workers
from patience import eventually, start


@pytest.mark.parametrize(
    ("protocol", "handles"),
    [
        (mqlite.MQ, (mqlite.Embedded, mqlite.Client)),
        (mqlite.AsyncMQ, (mqlite.AsyncEmbedded, mqlite.AsyncClient)),
    ],
)
def test_what_every_handle_has_is_in_the_protocol(
    protocol: type, handles: tuple[type, type]
) -> None:
    inner = {"blocking", "remote"}  # for receivers
    assert public(handles[0]) & public(handles[1]) - inner == public(protocol)


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize("way", ["sync", "http"])
def test_workers_of_a_sync_queue(world: World) -> None:
    mq: Any = world.mq
    for queue in ("orders", "mails"):
        mq.create_queue(queue)
    done = threading.Event()

    @mq.worker("orders", type=dict, concurrency=2)
    def on_order(order: dict[str, int]) -> None:
        mq.send("mails", f"order {order['id']}")

    @mq.worker("mails")
    def on_mail(message: mqlite.Delivery) -> None:
        seen.append(message.text)
        done.set()

    seen: list[str] = []
    mq.send("orders", '{"id": 1}')
    run = start(mq.run_workers)
    assert done.wait(10)
    eventually(lambda: mq.workers.counts["mails"].completed == 1)
    assert mq.workers.counts["orders"].completed == 1
    mq.workers.stop()
    assert run.result(10) is True
    assert seen == ["order 1"]
    assert on_order({"id": 2}) is None  # type: ignore[func-returns-value]


@pytest.mark.parametrize("way", ["async", "http_async"])
def test_workers_of_an_async_queue(world: World) -> None:
    mq: Any = world.mq
    assert isinstance(mq, Blocking)
    for queue in ("orders", "mails"):
        mq.create_queue(queue)
    done = threading.Event()

    @mq.inner.worker("orders")
    async def on_order(message: mqlite.AsyncDelivery) -> None:
        threads.append(threading.current_thread().name)
        await mq.inner.send("mails", message.text)

    @mq.inner.worker("mails")
    def on_mail(message: mqlite.Delivery) -> None:
        threads.append(threading.current_thread().name)
        message.complete()
        done.set()

    threads: list[str] = []
    mq.send("orders", "one")
    run = mq.loop.start(mq.inner.run_workers())
    assert done.wait(10)
    mq.inner.workers.stop()
    assert run.result(10) is True
    assert threads == [mq.loop._thread.name, "mqlite handler 1"]


@pytest.mark.parametrize("way", ["sync"])
def test_one_that_fails_stops_all(world: World) -> None:
    workers = Workers()
    world.mq.create_queue("there")
    workers.worker("there")(print)
    workers.worker("nowhere", on_error=lambda error, message: None)(print)
    with pytest.raises(NotFound):
        start(workers.run, world.mq).result(10)


def test_a_queue_has_one_worker() -> None:
    workers = Workers()
    workers.worker("q")(print)
    with pytest.raises(InvalidArgument, match="queue 'q' has a worker already"):
        workers.worker("q")(print)


def test_options_are_checked_where_they_are_written() -> None:
    with pytest.raises(InvalidArgument, match="concurrency"):
        Workers().worker("q", concurrency=0)


@pytest.mark.parametrize("way", ["sync"])
def test_no_workers(world: World) -> None:
    with pytest.raises(InvalidArgument, match="no workers"):
        world.mq.run_workers()


@pytest.mark.parametrize("way", ["sync", "http"])
def test_a_coroutine_function_needs_an_async_queue(world: World) -> None:
    async def handle(message: Any) -> None:
        pass

    class Handler:
        async def __call__(self, message: Any) -> None:
            pass

    for handler in (handle, Handler()):
        with pytest.raises(InvalidArgument, match="open_async or connect_async"):
            world.mq.receiver("q").run(handler)


@pytest.mark.parametrize("way", ["sync"])
def test_a_function_that_answers_a_coroutine_has_failed(world: World) -> None:
    async def handle(message: Any) -> None:
        pass

    reports: list[BaseException] = []
    world.mq.create_queue("q", max_delivery_count=1)
    world.mq.send("q", "work")
    receiver = world.mq.receiver("q", on_error=lambda error, message: reports.append(error))
    run = start(receiver.run, lambda message: handle(message))
    eventually(lambda: world.mq.stats("q").dead_lettered == 1)
    receiver.stop()
    run.result(10)
    assert "async def" in str(reports[0])


@pytest.mark.parametrize("way", ["async"])
def test_the_callers_context_is_the_handlers(world: World) -> None:
    from contextvars import ContextVar

    tenant: ContextVar[str] = ContextVar("tenant", default="")
    seen: list[str] = []

    async def handle(message: Any) -> None:
        seen.append(tenant.get())
        tenant.set("leaked")

    async def main() -> None:
        tenant.set("acme")
        mq: Any = world.mq
        receiver = mq.inner.receiver("q")
        running = asyncio.ensure_future(receiver.run(handle))
        while len(seen) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        receiver.stop()
        await running

    world.mq.create_queue("q")
    world.mq.send_batch("q", ["one", "two"])
    asyncio.run(main())
    assert seen == ["acme", "acme"]

"""Stopping: nothing more is claimed, what runs may finish, the rest is handed back uncounted."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

import pytest

from contract.ways import World
from mqlite import InvalidArgument, LockLost
from patience import eventually, start
from receiver.driving import Driven, Gate, call, only


@pytest.fixture(autouse=True)
def queue(world: World) -> None:
    world.mq.create_queue("q", lock_duration="10m")


def test_what_runs_may_finish(world: World) -> None:
    async def handle(message: Any) -> None:
        await gate.passed()

    gate = Gate()
    world.mq.send("q", "running")
    driven = Driven(world, handle, concurrency=2)
    gate.until_waiting()
    world.until_waiting("q")
    driven.receiver.stop()
    eventually(lambda: world.waiting("q") == 0)
    world.mq.send("q", "too late")
    gate.open()
    assert driven.result() is True
    assert driven.counts.completed == 1
    late = only(world)
    assert (late.text, late.state, late.delivery_count) == ("too late", "active", 0)


def test_an_idle_receiver_stops_at_once(world: World) -> None:
    async def handle(message: Any) -> None:
        pass

    driven = Driven(world, handle)
    world.until_waiting("q")
    assert driven.stop() is True
    world.mq.send("q", "nobody waits")
    assert only(world).delivery_count == 0
    assert driven.reports == []


@pytest.mark.parametrize("hurry", [False, True], ids=["time is up", "abandoned"])
def test_what_does_not_finish_is_handed_back_uncounted(world: World, hurry: bool) -> None:
    async def handle(message: Any) -> None:
        held.append(message)
        try:
            await gate.passed()
        except asyncio.CancelledError:
            held.append("cancelled")
            raise
        assert message.lost
        with pytest.raises(LockLost):
            await call(message.complete)
        ended.set()

    held: list[Any] = []
    gate, ended = Gate(), threading.Event()
    world.mq.send("q", "slow")
    driven = Driven(world, handle, drain_timeout="5s")
    gate.until_waiting()
    if hurry:
        driven.receiver.abandon()
    else:
        driven.receiver.stop()
        eventually(lambda: world.waiting("q") == 0)
        world.clock.advance(4_999)
        assert not driven.future.done()
        world.clock.advance(1)
    assert driven.result() is False
    message = only(world)
    assert (message.state, message.delivery_count, message.failure_count) == ("active", 0, 0)
    assert driven.counts.released == 1
    assert driven.reports == []
    if "async" in world.way:
        assert "cancelled" in held
    else:
        gate.open()
        assert ended.wait(10)
        assert only(world).state == "active"


@pytest.mark.parametrize("way", ["async", "http_async"])
def test_a_task_that_will_not_be_cancelled_loses_its_message(world: World) -> None:
    async def handle(message: Any) -> None:
        while not gate.is_set():
            try:
                began.set()
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                refused.set()
                while not gate.is_set():  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
        ended.set()

    gate, began, refused, ended = (threading.Event() for _ in range(4))
    world.mq.send("q", "stubborn")
    driven = Driven(world, handle)
    assert began.wait(10)
    driven.receiver.abandon()
    assert refused.wait(10)

    def given_up() -> bool:
        world.clock.advance(100)
        return driven.future.done()

    eventually(given_up)
    assert driven.result() is False
    assert (only(world).state, only(world).delivery_count) == ("active", 0)
    gate.set()
    assert ended.wait(10)


@pytest.mark.parametrize("way", ["async", "http_async"])
def test_a_task_that_finishes_when_cancelled_has_finished(world: World) -> None:
    async def handle(message: Any) -> None:
        began.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)

    began = threading.Event()
    world.mq.send("q", "quick")
    driven = Driven(world, handle)
    assert began.wait(10)
    driven.receiver.abandon()
    driven.result()
    assert driven.counts.completed == 1
    assert world.mq.stats("q").total == 0


@pytest.mark.parametrize("way", ["async", "http_async"])
def test_cancelling_run_hands_back_what_is_running(world: World) -> None:
    async def handle(message: Any) -> None:
        began.set()
        await asyncio.sleep(60)

    began = threading.Event()
    world.mq.send("q", "work")
    driven = Driven(world, handle)
    assert began.wait(10)
    driven.future.cancel()
    eventually(lambda: driven.counts.released == 1)
    assert (only(world).state, only(world).delivery_count) == ("active", 0)


@pytest.mark.parametrize("way", ["async"])
def test_a_handler_that_cancels_itself_has_failed(world: World) -> None:
    async def handle(message: Any) -> None:
        if message.delivery_count == 1:
            raise asyncio.CancelledError

    world.mq.send("q", "work")
    driven = Driven(world, handle)
    eventually(lambda: world.mq.stats("q").total == 0)
    driven.stop()
    assert driven.errors == [asyncio.CancelledError]
    assert (driven.counts.abandoned, driven.counts.completed) == (1, 1)


@pytest.mark.parametrize("order", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("way", ["sync"])
def test_a_handler_that_wants_to_exit_ends_the_run(world: World, order: type) -> None:
    def handle(message: Any) -> None:
        raise order

    world.mq.send("q", "work")
    with pytest.raises(order):
        start(world.mq.receiver("q").run, handle).result(10)
    message = only(world)
    assert (message.state, message.failure_count) == ("active", 1)


@pytest.mark.parametrize("order", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("way", ["async"])
def test_a_task_that_wants_to_exit_ends_the_run(world: World, order: type) -> None:
    async def handle(message: Any) -> None:
        raise order

    world.mq.send("q", "work")
    mq: Any = world.mq
    with pytest.raises(order):
        asyncio.run(mq.inner.receiver("q").run(handle))
    message = only(world)
    assert (message.state, message.failure_count) == ("active", 1)


@pytest.mark.parametrize("way", ["sync"])
def test_a_receiver_runs_once(world: World) -> None:
    receiver = world.mq.receiver("q")
    run = start(receiver.run, print)
    world.until_waiting("q")
    with pytest.raises(InvalidArgument, match="runs once"):
        receiver.run(print)
    receiver.stop()
    assert run.result(10)


@pytest.mark.parametrize("way", ["sync"])
def test_stopped_before_it_runs(world: World) -> None:
    world.mq.send("q", "work")
    receiver = world.mq.receiver("q")
    receiver.stop()
    assert start(receiver.run, lambda message: None).result(10) is True
    assert only(world).delivery_count == 0

"""Leases are kept while handlers run, and a lost one is told."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from contract.ways import World
from mqlite import LockLost, NotFound, Reject, Unavailable
from mqlite.model import RenewResult
from patience import eventually, start
from receiver.driving import Driven, Gate, call, only

LOCK_MS = 30_000


@pytest.fixture(autouse=True)
def queue(world: World) -> None:
    world.mq.create_queue("q", lock_duration="30s")
    world.mq.send("q", "work")


def locked_until(world: World) -> int:
    return only(world).locked_until_ms


def advance_with_renewals(world: World, step: int = 11_000, steps: int = 9) -> None:
    """Let much more time pass than a lease lasts, as fast as renewals come."""
    for _ in range(steps):
        world.later(step)
        renewed = world.clock.now() + LOCK_MS
        eventually(lambda renewed=renewed: locked_until(world) == renewed)


def test_a_lease_is_renewed_well_before_its_end(world: World) -> None:
    async def handle(message: Any) -> None:
        seen.append(message)
        await gate.passed()
        assert not message.lost

    seen: list[Any] = []
    gate = Gate()
    driven = Driven(world, handle)
    gate.until_waiting()
    advance_with_renewals(world)
    gate.open()
    eventually(lambda: world.mq.stats("q").total == 0)
    driven.stop()
    assert len(seen) == 1
    assert driven.reports == []


def test_leases_are_renewed_in_batches(world: World) -> None:
    async def handle(message: Any) -> None:
        await gate.passed()

    gate = Gate()
    world.mq.send_batch("q", ["work"] * 9)
    driven = Driven(world, handle, concurrency=10)
    gate.until_waiting(10)
    before = world.rows("SELECT count(*) FROM mqlite_messages WHERE locked_until > 0")
    assert before == [(10,)]
    world.later(11_000)
    renewed = world.clock.now() + LOCK_MS
    sql = "SELECT count(*) FROM mqlite_messages WHERE locked_until = ?"
    eventually(lambda: world.rows(sql, renewed) == [(10,)])
    gate.open()
    driven.stop()


@pytest.mark.parametrize("way", ["async", "http_async"])
def test_a_handler_that_blocks_its_event_loop_starves_nothing(world: World) -> None:
    async def handle(message: Any) -> None:
        began.set()
        go_on.wait()

    began, go_on = threading.Event(), threading.Event()
    driven = Driven(world, handle)
    began.wait()
    sql = "SELECT locked_until FROM mqlite_messages"
    for _ in range(6):
        world.clock.advance(11_000)
        renewed = world.clock.now() + LOCK_MS
        eventually(lambda renewed=renewed: world.rows(sql) == [(renewed,)])
    go_on.set()
    eventually(lambda: driven.counts.completed == 1)
    driven.stop()
    assert driven.reports == []


@pytest.mark.parametrize("way", ["sync", "http"])
def test_a_handler_that_never_waits_starves_nothing(world: World) -> None:
    def handle(message: Any) -> None:
        began.set()
        while not done:
            pass

    done = False
    began = threading.Event()
    receiver = world.mq.receiver("q")
    run = start(receiver.run, handle)
    began.wait()
    advance_with_renewals(world, steps=4)
    done = True
    eventually(lambda: receiver.counts.completed == 1)
    receiver.stop()
    assert run.result(10)


def test_a_lease_that_runs_out_is_told(world: World) -> None:
    """Async handlers are cancelled, sync ones can see it; none can settle."""

    async def handle(message: Any) -> Any:
        try:
            await gate.passed()
        except asyncio.CancelledError:
            told.append("cancelled")
        assert message.lost
        for method in (message.complete, message.renew, message.release, message.defer):
            with pytest.raises(LockLost, match="no longer locked"):
                await call(method)
        told.append("refused")
        return Reject("not mine to reject")

    told: list[str] = []
    gate = Gate()
    driven = Driven(world, handle, auto_renew=False)
    gate.until_waiting()
    world.clock.advance(LOCK_MS)
    eventually(lambda: driven.errors == [LockLost])
    if "async" not in world.way:
        gate.open()
    eventually(lambda: "refused" in told)
    driven.stop()
    assert told == (["cancelled"] if "async" in world.way else []) + ["refused"]
    assert driven.counts.lost == 1
    assert driven.counts.rejected == 0
    world.maintain()
    # The poll that stopping broke off may claim it now, and gives it back.
    eventually(lambda: only(world).state == "active")
    assert only(world).delivery_count == 1


def test_a_lease_taken_by_others_is_told_at_the_next_renewal(world: World) -> None:
    async def handle(message: Any) -> None:
        held.append(message)
        try:
            await gate.passed()
        except asyncio.CancelledError:
            held.append("cancelled")

    held: list[Any] = []
    gate = Gate()
    driven = Driven(world, handle)
    gate.until_waiting()
    world.owner.pause_queue("q")
    world.owner.abandon("q", *held[0].lease)
    world.clock.advance(11_000)
    eventually(lambda: driven.errors == [LockLost])
    assert held[0].lost
    if "async" in world.way:
        eventually(lambda: "cancelled" in held)
    gate.open()
    driven.stop()
    assert driven.counts.lost == 1
    assert driven.counts.completed == 0


def test_the_outcome_of_a_stolen_message_is_dropped_and_told(world: World) -> None:
    async def handle(message: Any) -> None:
        held.append(message)
        await gate.passed()

    held: list[Any] = []
    gate = Gate()
    driven = Driven(world, handle)
    gate.until_waiting()
    world.owner.pause_queue("q")
    world.owner.abandon("q", *held[0].lease)
    gate.open()
    eventually(lambda: driven.errors == [LockLost])
    driven.stop()
    assert driven.counts.lost == 1
    assert driven.counts.completed == 0
    assert only(world).state == "active"


def test_a_handler_may_renew_its_own_lease(world: World) -> None:
    async def handle(message: Any) -> None:
        for _ in range(4):
            await gate.passed()
            world.clock.advance(20_000)
            result = await call(message.renew)
            assert result.ok

    gate = Gate()
    gate.open()
    driven = Driven(world, handle, auto_renew=False)
    eventually(lambda: world.mq.stats("q").total == 0)
    driven.stop()
    assert driven.reports == []
    assert driven.counts.completed == 1


@pytest.mark.parametrize("way", ["sync"])
@pytest.mark.parametrize("recovers", [True, False])
def test_a_renewal_that_fails_is_tried_again_while_the_lease_lasts(
    world: World, monkeypatch: pytest.MonkeyPatch, recovers: bool
) -> None:
    def renew_batch(*args: Any) -> list[RenewResult]:
        if failing:
            raise Unavailable("not now", reason="overloaded")
        results = renew(*args)
        renewed.set()
        return results

    async def handle(message: Any) -> None:
        await gate.passed()

    failing, renewed, gate = True, threading.Event(), Gate()
    mq: Any = world.mq
    renew = mq.renew_batch
    monkeypatch.setattr(mq, "renew_batch", renew_batch)
    driven = Driven(world, handle)
    gate.until_waiting()
    world.clock.advance(11_000)
    eventually(lambda: driven.errors == [Unavailable])
    failing = not recovers
    world.clock.advance(6_000)
    assert not recovers or renewed.wait(10)
    world.clock.advance(13_000)
    if not recovers:
        eventually(lambda: driven.errors == [Unavailable, LockLost])
    gate.open()
    driven.stop()
    assert driven.counts.completed == int(recovers)
    assert driven.counts.lost == int(not recovers)


@pytest.mark.parametrize("way", ["sync"])
def test_a_renewal_that_can_never_succeed_ends_the_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def renew_batch(*args: Any) -> list[RenewResult]:
        raise NotFound("gone")

    async def handle(message: Any) -> None:
        await gate.passed()

    gate = Gate()
    monkeypatch.setattr(world.mq, "renew_batch", renew_batch)
    driven = Driven(world, handle)
    gate.until_waiting()
    world.clock.advance(11_000)
    eventually(lambda: driven.errors == [NotFound])
    gate.open()
    with pytest.raises(NotFound):
        driven.result()


@pytest.mark.parametrize("way", ["sync"])
def test_a_deadline_passes_while_the_renewal_hangs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def renew_batch(*args: Any) -> list[RenewResult]:
        hanging.set()
        go_on.wait()
        raise Unavailable("at last", reason="unreachable")

    async def handle(message: Any) -> None:
        held.append(message)
        await gate.passed()

    held: list[Any] = []
    hanging, go_on, gate = threading.Event(), threading.Event(), Gate()
    monkeypatch.setattr(world.mq, "renew_batch", renew_batch)
    driven = Driven(world, handle)
    gate.until_waiting()
    world.clock.advance(11_000)
    assert hanging.wait(10)
    world.clock.advance(LOCK_MS)
    eventually(lambda: driven.errors == [LockLost])
    assert held[0].lost
    go_on.set()
    gate.open()
    driven.stop()


@pytest.mark.parametrize("way", ["sync"])
def test_all_handlers_are_told_before_a_slow_error_handler(world: World) -> None:
    def on_error(error: BaseException, message: Any) -> None:
        reported.set()
        go_on.wait(10)

    async def handle(message: Any) -> None:
        held.append(message)
        await gate.passed()

    held: list[Any] = []
    reported, go_on, gate = threading.Event(), threading.Event(), Gate()
    world.mq.send_batch("q", ["work"] * 3)
    driven = Driven(world, handle, concurrency=4, auto_renew=False, on_error=on_error)
    gate.until_waiting(4)
    world.clock.advance(LOCK_MS)
    assert reported.wait(10)
    assert [message.job.state.value for message in held] == ["lost"] * 4
    go_on.set()
    gate.open()
    driven.stop()

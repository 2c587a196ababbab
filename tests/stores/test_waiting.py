"""Receivers that wait, and the clock they wait by."""

from __future__ import annotations

import asyncio
import threading

import pytest

from mqlite.clock import ManualClock, SystemClock
from mqlite.engine.steps import Gone, Operation, Steps
from mqlite.errors import Closed
from mqlite.stores.sqlite import SqliteStore
from mqlite.stores.waiters import Place, Waiters
from patience import eventually, start

from .toys import put

FAR = 2**62


@pytest.fixture
def waiters(clock: ManualClock) -> Waiters:
    return Waiters(clock)


def woken(places: list[Place]) -> list[bool]:
    return [place.woken for place in places]


def test_as_many_wake_as_became_ready_in_order_of_waiting(waiters: Waiters) -> None:
    places = [waiters.join(1) for _ in range(4)]
    other = waiters.join(2)
    waiters.ready(1, 2)
    assert woken(places) == [True, True, False, False]
    waiters.ready(1, 1)
    assert woken(places) == [True, True, True, False]
    assert not other.woken


def test_one_that_finds_nothing_keeps_its_place(waiters: Waiters) -> None:
    places = [waiters.join(1) for _ in range(3)]
    waiters.ready(1, 1)
    places[0].wait(FAR)
    waiters.ready(1, 1)
    assert woken(places) == [True, False, False]


def test_what_becomes_ready_between_claim_and_wait_is_noticed(waiters: Waiters) -> None:
    with waiters.join(1) as place:
        waiters.ready(1, 1)
        place.wait(FAR)
        assert waiters.waiting(1) == 1
    assert waiters.waiting(1) == 0


def test_one_that_leaves_passes_its_wake_up_on(waiters: Waiters) -> None:
    with waiters.join(1):
        second = waiters.join(1)
        waiters.ready(1, 1)
        assert not second.woken
    assert second.woken


def test_deletion_wakes_all_of_the_queue(waiters: Waiters) -> None:
    places = [waiters.join(1) for _ in range(3)]
    other = waiters.join(2)
    waiters.gone(1)
    assert woken(places) == [True] * 3
    assert not other.woken
    places[0].wait(FAR)
    assert waiters.waiting(1) == 1


def test_closing_wakes_all_and_lets_nobody_in(waiters: Waiters) -> None:
    place = waiters.join(1)
    waiters.close()
    with pytest.raises(Closed):
        place.wait(FAR)
    with pytest.raises(Closed):
        waiters.join(1)
    place.__exit__(None, None, None)


def test_time_ends_a_wait(waiters: Waiters, clock: ManualClock) -> None:
    with waiters.join(1) as place:
        waiting = start(lambda: place.wait(clock.now() + 1000))
        eventually(lambda: clock.waiting == 1)
        clock.advance(999)
        assert not waiting.done()
        clock.advance(1)
        waiting.result()
        assert not place.woken


def test_tasks_and_threads_wait_in_one_line(waiters: Waiters, clock: ManualClock) -> None:
    async def scenario() -> None:
        with waiters.join_async(1) as first, waiters.join(1) as second:
            task = asyncio.ensure_future(first.wait(FAR))
            thread = start(second.wait, FAR)
            await asyncio.sleep(0)
            waiters.ready(1, 1)
            await task
            assert not thread.done()
            waiters.ready(1, 2)
            await first.wait(FAR)
            await asyncio.to_thread(thread.result)
            timed = asyncio.ensure_future(first.wait(clock.now() + 10))
            await asyncio.sleep(0)
            clock.advance(10)
            await timed

    asyncio.run(scenario())


def test_a_commit_wakes_a_receiver_and_a_deletion_too(any_store: SqliteStore) -> None:
    def delete() -> Steps[None]:
        yield Gone(7, "q")

    with any_store.waiters.join(7) as place:
        waiting = start(place.wait, FAR)
        any_store.run(put(b"x", ready=7))
        waiting.result()
        waiting = start(place.wait, FAR)
        any_store.run(Operation("delete", delete))
        waiting.result()


def test_the_system_clock_waits_for_event_or_time() -> None:
    clock = SystemClock()
    event = threading.Event()
    clock.wait(clock.now() + 5, event)
    clock.wait(clock.now() - 5, event)
    event.set()
    clock.wait(FAR, event)

    async def scenario() -> None:
        event = asyncio.Event()
        await clock.wait_async(clock.now() + 5, event)
        event.set()
        await clock.wait_async(FAR, event)

    asyncio.run(scenario())


def test_a_manual_clock_moves_both_ways(clock: ManualClock) -> None:
    start = clock.now()
    assert clock.advance(5) == start + 5
    assert clock.set(start - 5) == clock.now() == start - 5

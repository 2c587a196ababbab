"""Receivers that wait for messages, in order of waiting.

A receiver takes its place *before* it claims: what becomes ready between an empty claim
and the wait finds it there. A woken receiver that finds nothing waits on in the same
place; one that leaves with a wake-up it did not use passes it on.
"""

from __future__ import annotations

import asyncio
import threading
from bisect import bisect_left, insort
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import Self

from mqlite.clock import Clock
from mqlite.errors import Closed


class Waiters:
    """Who waits on which queue. Safe to share between threads and event loops."""

    def __init__(self, clock: Clock) -> None:
        self.closed = False
        self._clock = clock
        self._lock = threading.Lock()
        self._tickets = count()
        self._sleeping: dict[int, list[_Place]] = {}

    def join(self, queue_id: int) -> Place:
        """A place for a thread at the end of the queue's line. Raises Closed."""
        return Place(self, self._clock, queue_id)

    def join_async(self, queue_id: int) -> AsyncPlace:
        """A place for a task of the running event loop. Raises Closed."""
        return AsyncPlace(self, self._clock, queue_id)

    def waiting(self, queue_id: int) -> int:
        """How many receivers of the queue have not been woken."""
        return len(self._sleeping.get(queue_id, ()))

    def ready(self, queue_id: int, messages: int) -> None:
        """Wake as many as there are messages, first come first served."""
        if queue_id in self._sleeping:
            with self._lock:
                line = self._sleeping.get(queue_id, [])
                woken, line[:messages] = line[:messages], []
                self._wake(queue_id, woken)

    def gone(self, queue_id: int) -> None:
        """Wake everybody who waits on the queue: it is deleted."""
        with self._lock:
            self._wake(queue_id, self._sleeping.pop(queue_id, []))

    def close(self) -> None:
        """Wake everybody; nobody can wait from here on."""
        with self._lock:
            self.closed = True
            for queue_id in list(self._sleeping):
                self._wake(queue_id, self._sleeping.pop(queue_id))

    def _enter(self, place: _Place) -> None:
        with self._lock:
            if self.closed:
                raise Closed
            place.ticket = next(self._tickets)
            self._sleeping.setdefault(place.queue_id, []).append(place)

    def _again(self, place: _Place) -> None:
        """Back to sleep, in the place it had."""
        with self._lock:
            if place.woken and not self.closed:
                place.woken = False
                insort(self._sleeping.setdefault(place.queue_id, []), place, key=_ticket)

    def _leave(self, place: _Place) -> None:
        with self._lock:
            line = self._sleeping.get(place.queue_id, [])
            if not place.woken:
                del line[bisect_left(line, place.ticket, key=_ticket)]
            self._wake(place.queue_id, [line.pop(0)] if place.woken and line else [])

    def _wake(self, queue_id: int, places: list[_Place]) -> None:
        if not self._sleeping.get(queue_id, True):
            del self._sleeping[queue_id]
        loops: dict[asyncio.AbstractEventLoop, list[_Place]] = {}
        for place in places:
            place.woken = True
            if place.loop is None:
                place.event.set()
            else:
                loops.setdefault(place.loop, []).append(place)
        for loop, sleepers in loops.items():
            with suppress(RuntimeError):  # a closed loop has nobody left to wake
                loop.call_soon_threadsafe(_set_all, sleepers)


class _Place:
    """One receiver's place. `woken` is the fact, under the lock; the event only pokes."""

    event: threading.Event | asyncio.Event
    loop: asyncio.AbstractEventLoop | None

    def __init__(self, waiters: Waiters, clock: Clock, queue_id: int) -> None:
        self.queue_id = queue_id
        self.ticket = 0
        self.woken = False
        self._waiters = waiters
        self._clock = clock
        waiters._enter(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._waiters._leave(self)

    def _resume(self) -> None:
        """What comes next is a claim: what becomes ready during it must count as new."""
        self.event.clear()
        self._waiters._again(self)
        if self._waiters.closed:
            raise Closed


class Place(_Place):
    """A thread's place; leave it by the context manager."""

    event: threading.Event
    loop = None

    def __init__(self, waiters: Waiters, clock: Clock, queue_id: int) -> None:
        self.event = threading.Event()
        super().__init__(waiters, clock, queue_id)

    def wait(self, until: int) -> None:
        """Return when there may be something to claim or at `until` (epoch ms). Raises
        Closed."""
        if not self.woken:
            self._clock.wait(until, self.event)
        self._resume()


class AsyncPlace(_Place):
    """A task's place; leave it by the context manager."""

    event: asyncio.Event

    def __init__(self, waiters: Waiters, clock: Clock, queue_id: int) -> None:
        self.event = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        super().__init__(waiters, clock, queue_id)

    async def wait(self, until: int) -> None:
        """Return when there may be something to claim or at `until` (epoch ms). Raises
        Closed."""
        if not self.woken:
            await self._clock.wait_async(until, self.event)
        self._resume()


def _ticket(place: _Place) -> int:
    return place.ticket


def _set_all(places: list[_Place]) -> None:
    for place in places:
        place.event.set()

"""Time as everything that waits sees it, so that a test can move it.

`wait` returns when the event is set or the time has come. A moved `ManualClock` releases
a wait by setting the caller's event: an event is a poke, never a fact.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from typing import Protocol, runtime_checkable


@runtime_checkable
class Clock(Protocol):
    """The source of time. Safe to share between threads and event loops."""

    def now(self) -> int:
        """Epoch milliseconds."""

    def elapsed(self) -> int:
        """Milliseconds from some point on, which never go back: for how long, not for when."""

    def wait(self, until: int, event: threading.Event) -> None:
        """Return when `event` is set or it has become `until` (epoch ms)."""

    async def wait_async(self, until: int, event: asyncio.Event) -> None:
        """`wait` for a task of an event loop."""


class SystemClock:
    """Wall time, which may jump. Sleeping is monotonic: a wait lasts as long as was left when
    it began, and whoever waits computes again what is left then."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def elapsed(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wait(self, until: int, event: threading.Event) -> None:
        left = max(0, until - self.now()) / 1000
        event.wait(min(left, threading.TIMEOUT_MAX))

    async def wait_async(self, until: int, event: asyncio.Event) -> None:
        left = max(0, until - self.now()) / 1000
        with suppress(TimeoutError):
            async with asyncio.timeout(left):
                await event.wait()


class ManualClock:
    """Time that moves only when told, forwards or backwards; waits last as `SystemClock`'s."""

    def __init__(self, now: int = 1_700_000_000_000) -> None:
        self._now = now
        self._elapsed = 0
        self._lock = threading.Lock()
        self._waits: dict[_Wait, int] = {}

    def now(self) -> int:
        return self._now

    def elapsed(self) -> int:
        return self._elapsed

    def advance(self, ms: int) -> int:
        """Move time by `ms` milliseconds and answer what it is now."""
        return self.set(self._now + ms)

    def set(self, now: int) -> int:
        with self._lock:
            self._elapsed += max(0, now - self._now)
            self._now = now
            due = [wait for wait, until in self._waits.items() if until <= self._elapsed]
        for wait in due:
            wait.poke()
        return now

    @property
    def waiting(self) -> int:
        """How many waits time has not released."""
        return len(self._waits)

    def wait(self, until: int, event: threading.Event) -> None:
        wait = _Wait(event, None)
        if self._enter(wait, until):
            try:
                event.wait()
            finally:
                self._leave(wait)

    async def wait_async(self, until: int, event: asyncio.Event) -> None:
        wait = _Wait(event, asyncio.get_running_loop())
        if self._enter(wait, until):
            try:
                await event.wait()
            finally:
                self._leave(wait)

    def _enter(self, wait: _Wait, until: int) -> bool:
        with self._lock:
            if until <= self._now:
                return False
            self._waits[wait] = self._elapsed + until - self._now
            return True

    def _leave(self, wait: _Wait) -> None:
        with self._lock:
            del self._waits[wait]


class _Wait:
    """One wait: the event to poke, and the loop it belongs to if it is asyncio's."""

    __slots__ = ("_event", "_loop")

    def __init__(
        self, event: threading.Event | asyncio.Event, loop: asyncio.AbstractEventLoop | None
    ) -> None:
        self._event = event
        self._loop = loop

    def poke(self) -> None:
        if self._loop is None:
            self._event.set()
        else:
            with suppress(RuntimeError):  # its loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._event.set)

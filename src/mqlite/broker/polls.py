"""Long polls: requests that wait, and that a departing client or a stop ends early."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from mqlite.broker.asgi import Receive
from mqlite.broker.budget import Budget, overloaded
from mqlite.errors import Canceled

T = TypeVar("T")

_WATCH_AFTER_SECONDS: Final = 0.01
"""A poll that is answered sooner costs no watcher."""


class Polls:
    """The polls of one broker. Belongs to one event loop."""

    def __init__(self, budget: Budget, limit: int) -> None:
        self._budget = budget
        self._limit = limit
        self._running: set[asyncio.Task[Any]] = set()

    def end_all(self) -> None:
        """Cut every poll short."""
        for task in self._running:
            task.cancel()

    async def run(self, poll: Coroutine[Any, Any, T], receive: Receive) -> T | None:
        """The poll's result, or None if it was cut short.

        Cancelling a poll gives back what it claims, so when the client goes away first
        nothing stays locked. Raises Canceled then, and Unavailable when too many wait.
        """
        if len(self._running) >= self._limit:
            poll.close()
            raise overloaded("too many long polls are waiting")
        task = asyncio.ensure_future(poll)
        self._running.add(task)
        try:
            await asyncio.wait((task,), timeout=_WATCH_AFTER_SECONDS)
            if not task.done():
                await self._wait_connected(task, receive)
        finally:
            self._running.discard(task)
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))
        return None if task.cancelled() else task.result()

    async def _wait_connected(self, task: asyncio.Task[Any], receive: Receive) -> None:
        """Wait for the poll. It is not pending work meanwhile, and not counted as such."""
        gone = asyncio.ensure_future(_disconnect(receive))
        self._budget.requests -= 1
        try:
            await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._budget.requests += 1
            gone.cancel()
        if not task.done():
            raise Canceled("the client went away")


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

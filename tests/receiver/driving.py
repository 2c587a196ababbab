"""A receiver beside the test. Handlers are written as coroutine functions; where the queue is
sync they run to their end in a thread."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from contract.ways import Blocking, World
from mqlite.messages import BaseMessage
from mqlite.model import MessageData
from mqlite.receiver.reports import Counts
from patience import PATIENCE_S, eventually, start

Handle = Callable[..., Awaitable[Any]]

_gates: list[Gate] = []
_driven: list[Consumer] = []


def end_all() -> None:
    """Leave nothing running behind a test, also behind one that failed."""
    for driven in _driven:
        driven.receiver.abandon()
    for gate in _gates:
        gate.open()
    for driven in _driven:
        with suppress(BaseException):
            driven.result()
    _gates.clear()
    _driven.clear()


class Consumer:
    """A running receiver, and what it has reported."""

    def __init__(self, mq: Any, handle: Handle, queue: str = "q", **options: Any) -> None:
        self.reports: list[tuple[BaseException, BaseMessage | None]] = []
        options.setdefault("on_error", lambda error, message: self.reports.append((error, message)))
        if isinstance(mq, Blocking):
            self.receiver = mq.inner.receiver(queue, **options)
            self.future = mq.loop.start(self.receiver.run(handle))
        else:
            self.receiver = mq.receiver(queue, **options)
            self.future = start(self.receiver.run, plain(handle))
        _driven.append(self)

    @property
    def counts(self) -> Counts:
        counts: Counts = self.receiver.counts
        return counts

    @property
    def errors(self) -> list[type[BaseException]]:
        return [type(error) for error, _ in self.reports]

    def stop(self) -> bool:
        """Stop it, wait for its end, and answer whether every handler could finish."""
        self.receiver.stop()
        return self.result()

    def result(self) -> bool:
        ended: bool = self.future.result(PATIENCE_S)
        return ended


class Driven(Consumer):
    """A running receiver of a world's queue."""

    def __init__(self, world: World, handle: Handle, queue: str = "q", **options: Any) -> None:
        super().__init__(world.mq, handle, queue, **options)


def plain(handle: Handle) -> Callable[..., Any]:
    def handler(*args: Any) -> Any:
        return asyncio.run(handle(*args))

    return handler


async def call(operation: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a method of a message, sync or async."""
    answer = operation(*args, **kwargs)
    return await answer if inspect.isawaitable(answer) else answer


class Gate:
    """Handlers wait here until the test opens it."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self.waiting = 0
        _gates.append(self)

    def open(self) -> None:
        self._open.set()

    async def passed(self) -> None:
        self.waiting += 1
        while not self._open.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    def until_waiting(self, number: int = 1) -> None:
        eventually(lambda: self.waiting == number)


def handle_until_empty(world: World, handle: Handle, queue: str = "q", **options: Any) -> Driven:
    """Run a receiver until nothing is active or locked any more, and stop it."""
    driven = Driven(world, handle, queue, **options)

    def idle() -> bool:
        stats = world.mq.stats(queue)
        return not stats.active and not stats.locked

    eventually(idle)
    driven.stop()
    return driven


def only(world: World, queue: str = "q") -> MessageData:
    """The one message of the queue, in whatever state."""
    [message] = world.mq.peek(queue)
    return message

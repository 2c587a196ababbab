"""Single sends that are made on an event loop at the same moment, as one operation.

What an operation costs beyond its rows, in the loop, in the writer's line and in the
interpreter, is then paid once (measured over HTTP with 64 connections: a third of the whole
request). Each send still succeeds or fails alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from mqlite.engine.routing import Routes, merged
from mqlite.engine.send import Sent, weight
from mqlite.engine.steps import Operation, Steps
from mqlite.errors import InTransaction, MqliteError, Unavailable
from mqlite.model import OutMessage

if TYPE_CHECKING:
    from mqlite.embedded.core import Core

MOST: Final = 64
MOST_BYTES: Final = 1024 * 1024


class Destination(msgspec.Struct, frozen=True):
    """What sends must have in common to be one operation; `topic` is the identity of what
    they were routed by."""

    loop: asyncio.AbstractEventLoop
    name: str
    at: int
    ttl_ms: int
    topic: int


class Waiter(Protocol):
    """Who waits for a sequence number: a future, or whoever needs no task to be told."""

    def done(self) -> bool: ...

    def set_result(self, seq: int, /) -> None: ...

    def set_exception(self, error: BaseException, /) -> None: ...


class Single(msgspec.Struct):
    """One send, and who waits for its number; no routes if it goes to a queue."""

    message: OutMessage
    routes: Routes | None
    waiter: Waiter


class Batch:
    """Sends of one round of the loop; `begun` once its task runs."""

    task: asyncio.Task[None]

    def __init__(self) -> None:
        self.sends: list[Single] = []
        self.begun = False
        self.room = MOST
        self.room_bytes = MOST_BYTES

    def takes(self, message: OutMessage) -> bool:
        """Whether there is room for it; none where somebody has cancelled every task."""
        return self.room > 0 and self.room_bytes >= len(message.body) and not self.task.cancelling()


class Gathering:
    """Gathers sends to the same queue or topic; each event loop's by themselves."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._batches: dict[Destination, Batch] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(
        self, name: str, message: OutMessage, at: int, ttl_ms: int, routes: Routes | None
    ) -> int:
        """Send one message to what is known to be a queue, or a topic that has been routed
        by; durable when it returns. Raises as the operation `send`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[int] = loop.create_future()
        batch = self.add(loop, name, at, ttl_ms, Single(message, routes, future))
        try:
            return await future
        except asyncio.CancelledError:
            if batch.begun and all(single.waiter.done() for single in batch.sends):
                batch.task.cancel()
            raise

    def add(
        self, loop: asyncio.AbstractEventLoop, name: str, at: int, ttl_ms: int, single: Single
    ) -> Batch:
        """`send` for a waiter, who is told on the running `loop`. Raises where nothing can be
        sent from here now: Closed, InTransaction, WrongProcess."""
        self._core.store.admit()
        message, routes = single.message, single.routes
        destination = Destination(loop, name, at, ttl_ms, 0 if routes is None else id(routes.topic))
        batch = self._batches.get(destination)
        if batch is None or not batch.takes(message):
            batch = Batch()
            # Not in the first sender's context: that may hold a transaction or a deadline. Nor
            # by the loop's task factory: an eager one would begin before anybody is in.
            task = asyncio.Task(self._send(destination, batch), loop=loop, context=Context())
            task.add_done_callback(partial(self._ended, destination, batch))
            batch.task = task
            self._tasks.add(task)
            self._batches[destination] = batch
        batch.sends.append(single)
        batch.room -= 1 if routes is None else max(len(routes.accepted), 1)
        batch.room_bytes -= len(message.body)
        return batch

    def _ended(self, destination: Destination, batch: Batch, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():  # by somebody who cancels every task, before it began
            self._close(destination, batch)
            _tell(batch.sends, asyncio.CancelledError())

    def _close(self, destination: Destination, batch: Batch) -> None:
        if self._batches.get(destination) is batch:
            del self._batches[destination]

    async def _send(self, destination: Destination, batch: Batch) -> None:
        self._close(destination, batch)
        batch.begun = True
        try:
            await self._run(destination, batch.sends)
        except BaseException as error:
            refused = isinstance(error, MqliteError) and not isinstance(
                error, Unavailable | InTransaction
            )
            if refused and len(batch.sends) > 1:
                # All at once: in turn, the last would wait as often as there are others.
                alone = [self._send_alone(destination, single) for single in batch.sends]
                await asyncio.gather(*alone)
                return
            _tell(batch.sends, error)

    async def _send_alone(self, destination: Destination, single: Single) -> None:
        if single.waiter.done():
            return
        try:
            await self._run(destination, [single])
        except BaseException as error:
            _tell([single], error)

    async def _run(self, destination: Destination, sends: Sequence[Single]) -> None:
        """Send what is still waited for when the writer begins, and tell each sender."""
        wanted: list[Single] = []

        def start() -> Steps[Sent]:
            wanted[:] = [single for single in sends if not single.waiter.done()]
            return self._operation(destination, wanted).start()

        size = weight([single.message for single in sends])
        sent = await self._core.run_async(Operation("send", start, size=size))
        for index, conflict in sent.conflicts.items():
            if not wanted[index].waiter.done():
                wanted[index].waiter.set_exception(conflict)
        for single, seq in zip(wanted, sent, strict=True):
            if not single.waiter.done():
                single.waiter.set_result(seq)

    def _operation(self, destination: Destination, sends: Sequence[Single]) -> Operation[Sent]:
        routes = [single.routes for single in sends if single.routes is not None]
        return self._core.calls.sender.operation(
            destination.name,
            [single.message for single in sends],
            destination.at,
            destination.ttl_ms,
            merged(routes) if routes else None,
        )


def _tell(sends: Iterable[Single], error: BaseException) -> None:
    """Tell those who still wait."""
    for single in sends:
        if not single.waiter.done():
            single.waiter.set_exception(error)

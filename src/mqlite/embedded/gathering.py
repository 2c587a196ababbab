"""Single sends that the tasks of an event loop make at the same moment, as one operation.

What an operation costs beyond its rows, in the loop, in the writer's line and in the
interpreter, is then paid once (measured over HTTP with 64 connections: a third of the whole
request). Each send still succeeds or fails alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextvars import Context
from typing import TYPE_CHECKING, Final, NamedTuple

from mqlite.engine import send
from mqlite.engine.steps import Operation
from mqlite.errors import MqliteError, Unavailable
from mqlite.model import OutMessage

if TYPE_CHECKING:
    from mqlite.embedded.core import Core

MOST: Final = 64
MOST_BYTES: Final = 1024 * 1024


class Kind(NamedTuple):
    """What sends must have in common to be one operation."""

    loop: asyncio.AbstractEventLoop
    queue: str
    at: int
    ttl_ms: int


class Batch:
    """Sends that wait for the end of the loop's present round."""

    def __init__(self) -> None:
        self.messages: list[OutMessage] = []
        self.futures: list[asyncio.Future[int]] = []
        self.room = MOST_BYTES


class Gathering:
    """Gathers sends to plain queues; each event loop's by themselves."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._batches: dict[Kind, Batch] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, queue: str, message: OutMessage, at: int, ttl_ms: int) -> int:
        """Send one message to what is known to be a queue; durable when it returns. Raises
        as the operation `send`."""
        self._core.store.admit()
        kind = Kind(asyncio.get_running_loop(), queue, at, ttl_ms)
        batch = self._batches.get(kind)
        if batch is None or len(batch.messages) >= MOST or batch.room < len(message.body):
            batch = self._batches[kind] = Batch()
            # Not in the first sender's context: that may hold a transaction or a deadline.
            kind.loop.call_soon(self._close, kind, batch, context=Context())
        future: asyncio.Future[int] = kind.loop.create_future()
        batch.messages.append(message)
        batch.futures.append(future)
        batch.room -= len(message.body)
        return await future

    async def _alone(self, queue: str, message: OutMessage, at: int, ttl_ms: int) -> int:
        return (await self._core.run_async(self._operation(queue, [message], at, ttl_ms)))[0]

    def _close(self, kind: Kind, batch: Batch) -> None:
        if self._batches.get(kind) is batch:
            del self._batches[kind]
        task = kind.loop.create_task(self._send(kind, batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, kind: Kind, batch: Batch) -> None:
        _, queue, at, ttl_ms = kind
        try:
            seqs = await self._core.run_async(self._operation(queue, batch.messages, at, ttl_ms))
        except BaseException as error:
            refused = isinstance(error, MqliteError) and not isinstance(error, Unavailable)
            if refused and len(batch.messages) > 1:
                await self._one_by_one(kind, zip(batch.messages, batch.futures, strict=True))
                return
            for future in batch.futures:
                if not future.done():
                    future.set_exception(error)
            return
        for future, seq in zip(batch.futures, seqs, strict=True):
            if seq and not future.done():
                future.set_result(seq)
        # A conflict is 0 in a batch; alone it is the error that its sender expects.
        unsent = zip(batch.messages, batch.futures, strict=True)
        await self._one_by_one(kind, ((m, f) for m, f in unsent if not f.done()))

    async def _one_by_one(
        self, kind: Kind, sends: Iterable[tuple[OutMessage, asyncio.Future[int]]]
    ) -> None:
        _, queue, at, ttl_ms = kind
        for message, future in sends:
            try:
                seq = await self._alone(queue, message, at, ttl_ms)
            except BaseException as error:
                if not future.done():
                    future.set_exception(error)
            else:
                if not future.done():
                    future.set_result(seq)

    def _operation(
        self, queue: str, messages: list[OutMessage], at: int, ttl_ms: int
    ) -> Operation[list[int]]:
        return send.send(
            queue, messages, at=at, ttl_ms=ttl_ms, max_bytes=self._core.max_message_bytes
        )

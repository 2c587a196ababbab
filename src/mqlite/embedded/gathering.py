"""Single sends that the tasks of an event loop make at the same moment, as one operation.

What an operation costs beyond its rows, in the loop, in the writer's line and in the
interpreter, is then paid once (measured over HTTP with 64 connections: a third of the whole
request). Each send still succeeds or fails alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import Context
from typing import TYPE_CHECKING, Final, NamedTuple

from mqlite.engine.routing import Routes, merged
from mqlite.engine.steps import Operation, Steps
from mqlite.errors import InTransaction, MqliteError, Unavailable
from mqlite.model import OutMessage

if TYPE_CHECKING:
    from mqlite.embedded.core import Core

MOST: Final = 64
MOST_BYTES: Final = 1024 * 1024


class Kind(NamedTuple):
    """What sends must have in common to be one operation; `topic` is the identity of what
    they were routed by."""

    loop: asyncio.AbstractEventLoop
    name: str
    at: int
    ttl_ms: int
    topic: int


class Single(NamedTuple):
    """One send, and who waits for its number; no routes if it goes to a queue."""

    message: OutMessage
    routes: Routes | None
    future: asyncio.Future[int]


class Batch:
    """Sends that wait for the end of the loop's present round."""

    def __init__(self) -> None:
        self.sends: list[Single] = []
        self.task: asyncio.Task[None] | None = None
        self.room = MOST
        self.room_bytes = MOST_BYTES


class Gathering:
    """Gathers sends to the same queue or topic; each event loop's by themselves."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._batches: dict[Kind, Batch] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(
        self, name: str, message: OutMessage, at: int, ttl_ms: int, routes: Routes | None
    ) -> int:
        """Send one message to what is known to be a queue, or a topic that has been routed
        by; durable when it returns. Raises as the operation `send`."""
        self._core.store.admit()
        topic = 0 if routes is None else id(routes.topic)
        kind = Kind(asyncio.get_running_loop(), name, at, ttl_ms, topic)
        batch = self._batches.get(kind)
        if batch is None or batch.room <= 0 or batch.room_bytes < len(message.body):
            batch = self._batches[kind] = Batch()
            # Not in the first sender's context: that may hold a transaction or a deadline.
            kind.loop.call_soon(self._close, kind, batch, context=Context())
        future: asyncio.Future[int] = kind.loop.create_future()
        batch.sends.append(Single(message, routes, future))
        batch.room -= 1 if routes is None else max(len(routes.accepted), 1)
        batch.room_bytes -= len(message.body)
        try:
            return await future
        except asyncio.CancelledError:
            if batch.task is not None and all(single.future.done() for single in batch.sends):
                batch.task.cancel()
            raise

    def _close(self, kind: Kind, batch: Batch) -> None:
        if self._batches.get(kind) is batch:
            del self._batches[kind]
        batch.task = kind.loop.create_task(self._send(kind, batch))
        self._tasks.add(batch.task)
        batch.task.add_done_callback(self._tasks.discard)

    async def _send(self, kind: Kind, batch: Batch) -> None:
        sends = batch.sends
        try:
            sent = await self._run(kind, sends)
        except BaseException as error:
            refused = isinstance(error, MqliteError) and not isinstance(
                error, Unavailable | InTransaction
            )
            if refused and len(sends) > 1:
                await self._one_by_one(kind, sends)
                return
            for single in sends:
                if not single.future.done():
                    single.future.set_exception(error)
            return
        for single, seq in sent:
            nobody = single.routes is not None and not single.routes.accepted
            if (seq or nobody) and not single.future.done():
                single.future.set_result(seq)
        # A conflict is 0 in a batch; alone it is the error that its sender expects.
        await self._one_by_one(kind, sends)

    async def _one_by_one(self, kind: Kind, sends: Sequence[Single]) -> None:
        for single in sends:
            if single.future.done():
                continue
            try:
                sent = await self._run(kind, [single])
            except BaseException as error:
                if not single.future.done():
                    single.future.set_exception(error)
            else:
                for _, seq in sent:
                    if not single.future.done():
                        single.future.set_result(seq)

    async def _run(self, kind: Kind, sends: Sequence[Single]) -> list[tuple[Single, int]]:
        """Sequence numbers of those whose senders still wait when the writer begins."""
        wanted: list[Single] = []

        def start() -> Steps[list[int]]:
            wanted[:] = [single for single in sends if not single.future.done()]
            return self._operation(kind, wanted).start()

        size = self._operation(kind, sends).size
        seqs = await self._core.run_async(Operation("send", start, size=size))
        return list(zip(wanted, seqs, strict=True))

    def _operation(self, kind: Kind, sends: Sequence[Single]) -> Operation[list[int]]:
        routes = [single.routes for single in sends if single.routes is not None]
        return self._core.calls.sender.operation(
            kind.name,
            [single.message for single in sends],
            kind.at,
            kind.ttl_ms,
            merged(routes) if routes else None,
        )

"""Handlers by name of their queue, declared where they are written and run together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, Unpack, overload

from mqlite.api import MQ, AsyncMQ, H, Handler, T
from mqlite.errors import InvalidArgument
from mqlite.receiver.handlers import is_async
from mqlite.receiver.options import Declare, ReceiverOptions, RunOptions, read_options
from mqlite.receiver.payloads import arguments_for
from mqlite.receiver.receivers import AsyncReceiver, Receiver
from mqlite.receiver.reports import Counts
from mqlite.receiver.together import Begin, run_together, run_together_async


class Worker(NamedTuple):
    """One handler, its queue, and how it is run."""

    queue: str
    handler: Handler
    options: ReceiverOptions


class Workers:
    """A registry of handlers. Needs no queue to be open, so a module that declares them can be
    imported anywhere; `mqlite worker module:name` opens one and runs them."""

    def __init__(self) -> None:
        self._workers: dict[str, Worker] = {}
        self._receivers: dict[str, Receiver | AsyncReceiver] = {}

    @overload
    def worker(self, queue: str, *, type: type[T], **options: Unpack[RunOptions]) -> Declare[T]: ...

    @overload
    def worker(self, queue: str, **options: Unpack[ReceiverOptions]) -> Callable[[H], H]: ...

    def worker(self, queue: str, **options: Unpack[ReceiverOptions]) -> Any:
        """Declare the decorated function the handler of a queue, with the options of
        `receiver`. Raises InvalidArgument, also where the queue has one already."""
        read_options(queue, options)

        def declare(handler: H) -> H:
            arguments_for(handler, options.get("type"))
            if queue in self._workers:
                raise InvalidArgument(f"queue {queue!r} has a worker already")
            self._workers[queue] = Worker(queue, handler, options)
            return handler

        return declare

    def __iter__(self) -> Iterator[Worker]:
        return iter(self._workers.values())

    def declared(self) -> list[Worker]:
        """All of them. Raises InvalidArgument where there are none."""
        if not self._workers:
            raise InvalidArgument("there are no workers; declare them with @worker(queue)")
        return list(self)

    @property
    def needs_loop(self) -> bool:
        """Whether one of the handlers is a coroutine function."""
        return any(is_async(worker.handler) for worker in self)

    @property
    def counts(self) -> dict[str, Counts]:
        """What became of the messages so far, by queue."""
        return {queue: receiver.counts for queue, receiver in self._receivers.items()}

    @property
    def running(self) -> dict[str, int]:
        """How many handlers are running, by queue."""
        return {queue: receiver.running for queue, receiver in self._receivers.items()}

    def run(self, mq: MQ, *, handle_signals: bool = True) -> bool:
        """Run all handlers over a sync queue until they are stopped or one fails; see
        `Receiver.run`."""
        return run_together(self._begins(mq), handle_signals=handle_signals)

    async def run_async(self, mq: AsyncMQ, *, handle_signals: bool = False) -> bool:
        """Run all handlers over an async queue until they are stopped or one fails; see
        `AsyncReceiver.run`."""
        return await run_together_async(self._begins(mq), handle_signals=handle_signals)

    def stop(self) -> None:
        """Stop what is running; see `Receiver.stop`."""
        for receiver in self._receivers.values():
            receiver.stop()

    def _begins(self, mq: MQ | AsyncMQ) -> list[Begin]:
        declared = self.declared()
        self._receivers = {w.queue: mq.receiver(w.queue, **w.options) for w in declared}
        return [partial(self._receivers[w.queue].begin, w.handler) for w in declared]

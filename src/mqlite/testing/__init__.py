"""For tests of programs that use a queue: time moves when the test says so, and handlers run
when it says so, on its own thread.

The pytest fixtures are in `mqlite.testing.fixtures`.
"""

from __future__ import annotations

from typing import Unpack

from mqlite.api import Handler
from mqlite.clock import ManualClock
from mqlite.durations import Duration, to_ms
from mqlite.embedded import AsyncEmbedded, Embedded, open as open_queue
from mqlite.errors import InvalidArgument
from mqlite.receiver.handlers import is_async
from mqlite.receiver.options import ReceiverOptions
from mqlite.receiver.reports import Counts
from mqlite.receiver.workers import Workers
from mqlite.testing.inline import AsyncInline, Inline

__all__ = ["ManualClock", "drain", "drain_async", "later", "open_memory", "work", "work_async"]


def open_memory() -> Embedded:
    """A queue in memory, with a `ManualClock` as its `clock`."""
    return open_queue(":memory:", clock=ManualClock())


def later(mq: Embedded | AsyncEmbedded, duration: Duration) -> None:
    """Let time pass and everything that is due by then happen: schedules, ends of leases and
    of lives."""
    clock = mq.clock
    if not isinstance(clock, ManualClock):
        raise InvalidArgument("mq has no ManualClock; open it with open_memory or clock=")
    clock.advance(to_ms(duration, "duration"))
    mq.core.maintain()


def drain(mq: Embedded, queue: str, handler: Handler, **options: Unpack[ReceiverOptions]) -> Counts:
    """Hand every message that is due to the handler, one after the other, and settle it as
    `mq.receiver(queue, **options).run(handler)` would; answers what became of them.

    A message that is due again at once comes again, until it is dead-lettered.
    """
    inline = Inline(mq, queue, _plain(handler), options)
    while inline.run():
        pass
    return inline.counts


async def drain_async(
    mq: AsyncEmbedded, queue: str, handler: Handler, **options: Unpack[ReceiverOptions]
) -> Counts:
    """`drain` for coroutine functions, and plain ones."""
    inline = AsyncInline(mq, queue, handler, options)
    while await inline.run_async():
        pass
    return inline.counts


def work(mq: Embedded, workers: Workers | None = None) -> dict[str, Counts]:
    """`drain` for all workers, those declared with `mq.worker` or the ones given, until nothing
    is due in any of their queues: also what they send each other. Answers by queue. Raises
    InvalidArgument where there are none."""
    declared = (workers or mq.workers).declared()
    inlines = [Inline(mq, w.queue, _plain(w.handler), w.options) for w in declared]
    while any(inline.run() for inline in inlines):
        pass
    return {inline.queue: inline.counts for inline in inlines}


async def work_async(mq: AsyncEmbedded, workers: Workers | None = None) -> dict[str, Counts]:
    """`work` for coroutine functions, and plain ones."""
    declared = (workers or mq.workers).declared()
    inlines = [AsyncInline(mq, w.queue, w.handler, w.options) for w in declared]
    while await _one_of(inlines):
        pass
    return {inline.queue: inline.counts for inline in inlines}


async def _one_of(inlines: list[AsyncInline]) -> bool:
    for inline in inlines:
        if await inline.run_async():
            return True
    return False


def _plain(handler: Handler) -> Handler:
    if is_async(handler):
        raise InvalidArgument("handler is a coroutine function; use the _async helper")
    return handler

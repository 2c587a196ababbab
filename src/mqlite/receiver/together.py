"""Runs that end together, and what stops them: one of them ends, or a signal comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from enum import Enum
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final

from mqlite.receiver import signals
from mqlite.receiver.running import Run

Begin = Callable[[Callable[[], object]], Run]
"""Starts a run, which calls what it is given when it has ended."""

# A thread that is about to wait, or on Windows does, sees no signal; nor does it one that the
# system has handed to another thread while the one before was pending.
_LOOK_UP: Final = 0.2


class _News(Enum):
    ENDED = "ended"
    SIGNAL = "signal"


class _Group:
    def __init__(self) -> None:
        self.live = 0
        self._runs: list[Run] = []
        self._signals = 0

    def begin(self, begins: Sequence[Begin], ended: Callable[[], object]) -> None:
        for begin in begins:
            self._runs.append(begin(ended))
            self.live += 1

    def hear(self, news: _News) -> None:
        if news is _News.ENDED:
            self.live -= 1
        else:
            self._signals += 1
        for run in self._runs:
            run.abandon() if self._signals > 1 else run.stop()

    def abandon(self) -> None:
        for run in self._runs:
            run.abandon()

    def result(self) -> bool:
        """Whether every handler could finish. Raises the first failure."""
        for run in self._runs:
            if run.error is not None:
                raise run.error
        return all(run.clean for run in self._runs)


def run_together(begins: Sequence[Begin], *, handle_signals: bool) -> bool:
    """Run until one is stopped or fails, which stops all; answers whether every handler could
    finish. Raises the first failure."""
    group = _Group()
    # Putting into this queue is safe within a signal handler; stopping a run is not.
    news: SimpleQueue[_News] = SimpleQueue()
    with signals.caught(partial(news.put, _News.SIGNAL)) if handle_signals else nullcontext():
        try:
            group.begin(begins, partial(news.put, _News.ENDED))
            while group.live:
                group.hear(_next(news))
        except BaseException:
            group.abandon()
            while group.live:
                group.hear(_next(news))
            raise
    return group.result()


def _next(news: SimpleQueue[_News]) -> _News:
    while True:
        with suppress(Empty):
            return news.get(timeout=_LOOK_UP)


async def run_together_async(begins: Sequence[Begin], *, handle_signals: bool) -> bool:
    """`run_together` for a task; its cancellation abandons the runs."""
    group = _Group()
    loop = asyncio.get_running_loop()
    news: asyncio.Queue[_News] = asyncio.Queue()

    def tell(what: _News) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody listens
            loop.call_soon_threadsafe(news.put_nowait, what)

    with signals.caught(partial(tell, _News.SIGNAL)) if handle_signals else nullcontext():
        try:
            group.begin(begins, partial(tell, _News.ENDED))
            while group.live:
                group.hear(await _next_async(news))
        except BaseException:
            group.abandon()
            while group.live:
                group.hear(await _next_async(news))
            raise
    return group.result()


async def _next_async(news: asyncio.Queue[_News]) -> _News:
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_UP):
                return await news.get()

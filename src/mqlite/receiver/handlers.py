"""Handlers, and where they run: plain functions in threads, coroutine functions as tasks."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import Any, Protocol

from mqlite.api import Handler
from mqlite.messages import BaseMessage
from mqlite.receiver.jobs import Job
from mqlite.receiver.outcomes import RELEASE, Outcome, judge

Ended = Callable[[Job, Outcome | BaseException], None]
"""Told what a handler has decided, or what came out of it."""
Arguments = Callable[[BaseMessage], tuple[Any, ...]]
"""What a handler is called with; raises an outcome for a message it cannot be called with."""


def is_async(handler: Handler) -> bool:
    """Whether a call of it has to be awaited."""
    called = type(handler).__call__ if callable(handler) else None
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(called)


class Runner(Protocol):
    """Runs handlers."""

    def start(self, jobs: Sequence[Job]) -> None:
        """Run the handler for each; there is a slot for every one."""

    def unstarted(self) -> list[Job]:
        """Take back what no handler has seen yet."""

    def cut_off(self, jobs: Sequence[Job]) -> bool:
        """Make running handlers end; whether that can be done."""

    def stop(self) -> None:
        """Nothing will be started any more."""


class Threads:
    """Runs a plain function in up to `limit` threads.

    A thread is woken only by one that is about to be busy: short handlers then run one after
    the other in a single thread, which is several times faster than waking one for each.
    """

    def __init__(
        self, handler: Handler, arguments: Arguments, limit: int, context: Context, ended: Ended
    ) -> None:
        self._handler = handler
        self._arguments = arguments
        self._limit = limit
        self._context = context
        self._ended = ended
        self._ready: deque[Job] = deque()
        self._work = threading.Condition(threading.Lock())
        self._threads = 0
        self._idle = 0
        self._waking = False
        self._stopped = False

    def start(self, jobs: Sequence[Job]) -> None:
        with self._work:
            self._ready.extend(jobs)
            self._wake()

    def unstarted(self) -> list[Job]:
        with self._work:
            jobs = list(self._ready)
            self._ready.clear()
            return jobs

    def cut_off(self, jobs: Sequence[Job]) -> bool:
        return False

    def stop(self) -> None:
        with self._work:
            self._stopped = True
            self._work.notify_all()

    def _wake(self) -> None:
        if not self._ready or self._waking:
            return
        if self._idle:
            self._waking = True
            self._work.notify()
        elif self._threads < self._limit:
            self._begin_thread()

    def _begin_thread(self) -> None:
        """Raises RuntimeError where the system grants not even the first one."""
        name = f"mqlite handler {self._threads + 1}"
        try:
            threading.Thread(target=self._serve, name=name, daemon=True).start()
        except RuntimeError:
            if not self._threads:
                raise
            return  # those that run will do, and try again
        self._threads += 1
        self._waking = True

    def _serve(self) -> None:
        context = self._context.copy()
        awake = True
        while (job := self._next(awake)) is not None:
            awake = False
            self._ended(job, context.copy().run(self._call, job))
            del job

    def _next(self, awake: bool) -> Job | None:
        """The next job; None when there will be no more. `awake`: it was woken for this."""
        with self._work:
            while True:
                if awake:
                    self._waking = False
                if self._ready:
                    job = self._ready.popleft()
                    self._wake()
                    return job
                if self._stopped:
                    return None
                self._idle += 1
                self._work.wait()
                self._idle -= 1
                awake = True

    def _call(self, job: Job) -> Outcome | BaseException:
        try:
            return judge(self._handler(*self._arguments(job.message)))
        except BaseException as error:
            return error


class Tasks:
    """Runs a coroutine function as tasks of an event loop; used from other threads."""

    def __init__(
        self,
        handler: Callable[..., Awaitable[Any]],
        arguments: Arguments,
        loop: asyncio.AbstractEventLoop,
        context: Context,
        ended: Ended,
    ) -> None:
        self._handler = handler
        self._arguments = arguments
        self._loop = loop
        self._context = context
        self._ended = ended
        self._tasks: dict[Job, asyncio.Task[None]] = {}
        self._cutting = False

    def start(self, jobs: Sequence[Job]) -> None:
        self._loop.call_soon_threadsafe(self._begin, jobs)

    def unstarted(self) -> list[Job]:
        return []

    def cut_off(self, jobs: Sequence[Job]) -> bool:
        self._cutting = True
        for job in jobs:
            self._cancel(job)
        return True

    def stop(self) -> None:
        """Nothing to do: tasks end by themselves."""

    def _begin(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            context = self._context.copy()
            task = self._loop.create_task(self._call(job), context=context)
            if task.done():  # a loop may run a task at once, as far as it goes
                continue
            self._tasks[job] = task
            job.tell_lost = partial(self._cancel, job)
            task.add_done_callback(partial(self._never_ran, job))
            if job.lost or self._cutting:
                task.cancel()

    async def _call(self, job: Job) -> None:
        decided: Outcome | BaseException
        try:
            decided = judge(await self._handler(*self._arguments(job.message)))
        except asyncio.CancelledError as error:
            # Cut off, it was interrupted; cancelled by anybody else, it has failed.
            decided = RELEASE if self._cutting else error
        except BaseException as error:
            decided = error
        self._tasks.pop(job, None)
        self._ended(job, decided)

    def _never_ran(self, job: Job, task: asyncio.Task[None]) -> None:
        """A task that is cancelled before its first step runs nothing of its own."""
        if self._tasks.pop(job, None) is not None:
            self._ended(job, RELEASE)

    def _cancel(self, job: Job) -> None:
        def cancel() -> None:
            if task := self._tasks.get(job):
                task.cancel()

        with suppress(RuntimeError):  # the loop is closed: no handler runs any more
            self._loop.call_soon_threadsafe(cancel)

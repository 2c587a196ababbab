"""The hands-off consumer: `mq.receiver(queue).run(handler)`."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Generic, TypeVar

from mqlite.api import Handler
from mqlite.errors import InvalidArgument, WrongProcess
from mqlite.handles import AsyncHandle, Handle, SyncHandle
from mqlite.receiver.handlers import Runner, Tasks, Threads, is_async
from mqlite.receiver.jobs import give, give_async
from mqlite.receiver.options import ReceiverOptions, read_options
from mqlite.receiver.payloads import arguments_for
from mqlite.receiver.polling import Source
from mqlite.receiver.reports import Counts, Reporter
from mqlite.receiver.running import HARD_STOP_MS, Run
from mqlite.receiver.together import run_together, run_together_async

Q = TypeVar("Q", bound=Handle)


class _Receiver(Generic[Q]):
    """What sync and async receivers share. One runs once."""

    def __init__(self, mq: Q, queue: str, options: ReceiverOptions) -> None:
        self._mq = mq
        self._settings = read_options(queue, options)
        self._reporter = Reporter(queue, self._settings.on_error)
        self._pid = os.getpid()
        self._run: Run | None = None
        self._stopped = False

    @property
    def counts(self) -> Counts:
        """What became of the messages so far."""
        return self._reporter.counts

    @property
    def running(self) -> int:
        """How many handlers are running."""
        return 0 if self._run is None else self._run.running

    def stop(self) -> None:
        """Claim nothing more and let `run` return when what is running has finished, or the
        drain's time is up. From any thread; returns at once."""
        self._check_process()
        self._stopped = True
        if self._run is not None:
            self._run.stop()

    def abandon(self) -> None:
        """`stop`, without waiting for handlers: their messages are handed back at once."""
        self._check_process()
        self._stopped = True
        if self._run is not None:
            self._run.abandon()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._settings.queue!r}>"

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise WrongProcess("this receiver was made before a fork; make another one here")

    def _begin(self, run: Run) -> None:
        """From here on it can be stopped; and is, if that was asked for before."""
        self._run = run
        self._mq._runs.add(run)
        if self._stopped:
            run.stop()

    def _check_unused(self) -> None:
        self._check_process()
        if self._run is not None:
            raise InvalidArgument("a receiver runs once; make another one")

    def _in_threads(self, run: Run, handler: Handler) -> Runner:
        settings = self._settings
        given = arguments_for(handler, settings.type)
        return Threads(handler, given, settings.concurrency, copy_context(), run.ended)


class Receiver(_Receiver[SyncHandle]):
    """Runs a plain function for every message of a queue; made by `mq.receiver`."""

    def run(self, handler: Handler, *, handle_signals: bool = True) -> bool:
        """Receive until stopped; answers whether every handler could finish.

        On the main thread SIGINT and SIGTERM stop it, and a second one abandons what is
        running; on other threads, and without `handle_signals`, they are left alone.
        Raises what lasts, such as NotFound, PermissionDenied or Closed, after reporting it.
        """
        return run_together([partial(self.begin, handler)], handle_signals=handle_signals)

    def begin(self, handler: Handler, finished: Callable[[], object]) -> Run:
        """Start the threads of a run."""
        self._check_unused()
        if is_async(handler):
            raise InvalidArgument(
                "handler is a coroutine function; use a queue of open_async or connect_async"
            )
        mq = self._mq
        source = Source(mq, mq.blocking(), mq.clock, mq.remote)
        given = partial(give, mq=mq, clock=mq.clock)
        run = Run(source, self._settings, self._reporter, given)
        self._begin(run)
        run.start(self._in_threads(run, handler), finished)
        return run


class AsyncReceiver(_Receiver[AsyncHandle]):
    """Runs a coroutine function as tasks of the event loop, or a plain function in threads, for
    every message of a queue; made by `mq.receiver`."""

    async def run(self, handler: Handler, *, handle_signals: bool = False) -> bool:
        """Receive until stopped; answers whether every handler could finish.

        With `handle_signals`, in the main thread's loop, SIGINT and SIGTERM stop it, and a
        second one abandons what is running; by default they are left to whoever runs the
        loop. Cancelled, it hands back what is running, and goes on to be cancelled.
        Raises what lasts, such as NotFound, PermissionDenied or Closed, after reporting it.
        """
        return await run_together_async(
            [partial(self.begin, handler)], handle_signals=handle_signals
        )

    def begin(self, handler: Handler, finished: Callable[[], object]) -> Run:
        """Start the threads of a run, from the event loop that its tasks are to run in."""
        self._check_unused()
        mq = self._mq
        calls = mq.blocking()
        source = Source(calls, mq.blocking(), mq.clock, mq.remote)
        if is_async(handler):
            given = partial(give_async, mq=mq, clock=mq.clock)
            run = Run(source, self._settings, self._reporter, given)
            runner: Runner = Tasks(
                handler,
                arguments_for(handler, self._settings.type),
                asyncio.get_running_loop(),
                copy_context(),
                run.ended,
            )
        else:
            given = partial(give, mq=calls, clock=mq.clock)
            run = Run(source, self._settings, self._reporter, given)
            runner = self._in_threads(run, handler)

        def done() -> None:
            # It waits for calls under way, of which one may hang.
            closing = threading.Thread(target=calls.close, daemon=True)
            closing.start()
            closing.join(HARD_STOP_MS / 1000)
            finished()

        self._begin(run)
        run.start(runner, done)
        return run

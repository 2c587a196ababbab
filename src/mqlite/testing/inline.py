"""A receiver without threads: what is due, one message after the other."""

from __future__ import annotations

from mqlite.api import Handler
from mqlite.errors import LockLost
from mqlite.handles import AsyncHandle, Handle
from mqlite.messages import Message
from mqlite.receiver.handlers import is_async
from mqlite.receiver.jobs import Job, State, give, give_async
from mqlite.receiver.options import ReceiverOptions, read_options
from mqlite.receiver.outcomes import Outcome, judge, settle
from mqlite.receiver.payloads import arguments_for
from mqlite.receiver.reports import Counts, Reporter
from mqlite.receiver.verdicts import Verdicts


class Inline:
    """Hands the due messages of one queue to a handler. Settles them as a receiver would."""

    def __init__(self, mq: Handle, queue: str, handler: Handler, options: ReceiverOptions) -> None:
        settings = read_options(queue, options)
        self._calls = mq.blocking()
        self._clock = mq.clock
        self.queue = queue
        self._handler = handler
        self._arguments = arguments_for(handler, settings.type)
        self._reporter = Reporter(queue, settings.on_error)
        self._verdicts = Verdicts(settings, self._reporter)

    @property
    def counts(self) -> Counts:
        return self._reporter.counts

    def run(self) -> bool:
        """Handle the next message; whether there was one."""
        if (message := self._next()) is None:
            return False
        job = give(message, self._calls, self._clock)
        decided: Outcome | BaseException
        try:
            decided = judge(self._handler(*self._arguments(job.message)))
        except BaseException as error:
            decided = error
        self._end(job, decided)
        return True

    def _next(self) -> Message | None:
        return next(iter(self._calls.receive(self.queue)), None)

    def _end(self, job: Job, decided: Outcome | BaseException) -> None:
        """Settle it. What makes a run end comes out of it here, too."""
        self._settle(job, decided)
        if not isinstance(decided, Exception):
            raise decided

    def _settle(self, job: Job, decided: Outcome | BaseException) -> None:
        outcome = self._verdicts.on(job, decided)
        if job.settled:
            self._reporter.count(job.outcome)
            return
        try:
            if not job.hold():
                raise LockLost(f"the lease on {job} ran out")
            settle(self._calls, job.queue, job.lease, outcome)
        except LockLost as error:
            self._reporter.add("lost")
            self._reporter.tell_of_message("lease lost", error, job.message)
        else:
            job.become(State.SETTLED)
            self._reporter.count(outcome)


class AsyncInline(Inline):
    """`Inline` for a task; the handler may be a coroutine function."""

    def __init__(
        self, mq: AsyncHandle, queue: str, handler: Handler, options: ReceiverOptions
    ) -> None:
        super().__init__(mq, queue, handler, options)
        self._mq = mq

    async def run_async(self) -> bool:
        """`run`, awaiting the handler where it has to be."""
        if not is_async(self._handler):
            return self.run()
        if (message := self._next()) is None:
            return False
        job = give_async(message, self._mq, self._clock)
        decided: Outcome | BaseException
        try:
            decided = judge(await self._handler(*self._arguments(job.message)))
        except BaseException as error:
            decided = error
        self._end(job, decided)
        return True

"""What handlers have decided is told to the queue: completions in batches, each as soon as the
one before it is through."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from mqlite.api import MQ
from mqlite.clock import Clock
from mqlite.errors import InvalidArgument, LockLost, OutcomeUnknown
from mqlite.model import MAX_BATCH
from mqlite.receiver.failures import lasting, pause_ms
from mqlite.receiver.jobs import Job, State
from mqlite.receiver.ledger import Ledger
from mqlite.receiver.outcomes import Complete, settle
from mqlite.receiver.reports import Reporter
from mqlite.receiver.waiting import NEVER, wait_until


class Settler:
    """Settles messages in a thread of its own.

    What fails in passing, also with an unknown outcome, is sent again just as it was, until
    the lease has ended. Nothing counts as settled unless the queue has said so.
    """

    def __init__(
        self,
        mq: MQ,
        queue: str,
        ledger: Ledger,
        clock: Clock,
        reporter: Reporter,
        fail: Callable[[BaseException], None],
    ) -> None:
        self._mq = mq
        self._queue = queue
        self._ledger = ledger
        self._clock = clock
        self._reporter = reporter
        self._fail = fail
        self._new: deque[Job] = deque()
        self._failed: list[Job] = []
        self._poke = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="mqlite settling", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Try what is left once more, and give up what fails then."""
        self._stopped = True
        self._poke.set()
        self._thread.join(timeout)

    def put(self, job: Job) -> None:
        """Settle it by its `outcome`; it is held for that."""
        self._new.append(job)
        if not self._poke.is_set():
            self._poke.set()

    def _run(self) -> None:
        while True:
            self._poke.clear()
            stopping = self._stopped
            if jobs := self._due(everything=stopping):
                self._settle(jobs)
            elif stopping:
                return
            elif self._failed:
                first = min(job.retry_at for job in self._failed)
                wait_until(self._clock, first, self._poke)
            else:
                self._poke.wait()

    def _due(self, *, everything: bool) -> list[Job]:
        jobs: list[Job] = []
        while self._new and len(jobs) < MAX_BATCH:
            jobs.append(self._new.popleft())
        if self._failed and len(jobs) < MAX_BATCH:
            now = NEVER if everything else self._clock.elapsed()
            jobs += [job for job in self._failed if job.retry_at <= now]
            self._failed = [job for job in self._failed if job.retry_at > now]
        return jobs

    def _settle(self, jobs: Sequence[Job]) -> None:
        completed = [job for job in jobs if isinstance(job.outcome, Complete)]
        for start in range(0, len(completed), MAX_BATCH):
            self._complete(completed[start : start + MAX_BATCH])
        for job in jobs:
            if not isinstance(job.outcome, Complete):
                self._settle_one(job)

    def _complete(self, jobs: Sequence[Job]) -> None:
        try:
            results = self._mq.complete_batch(self._queue, [job.lease for job in jobs])
        except Exception as error:
            self._not_settled(jobs, error)
            return
        settled = [job for job, result in zip(jobs, results, strict=True) if result.ok]
        for job, result in zip(jobs, results, strict=True):
            if not result.ok:
                self._lost(job, LockLost(f"{job} was completed after its lease was lost"))
        self._settled(settled)

    def _settle_one(self, job: Job) -> None:
        try:
            settle(self._mq, job.queue, job.lease, job.outcome)
        except LockLost as error:
            self._lost(job, error)
        except Exception as error:
            self._not_settled([job], error)
        else:
            self._settled([job])

    def _settled(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            job.become(State.SETTLED)
        if jobs:
            self._reporter.count(jobs[0].outcome, len(jobs))
            self._ledger.settled(jobs)

    def _lost(self, job: Job, error: LockLost) -> None:
        job.become(State.LOST)
        self._reporter.add("lost")
        self._reporter.tell_of_message("lease lost", error, job.message)
        self._ledger.settled([job])

    def _not_settled(self, jobs: Sequence[Job], error: Exception) -> None:
        now = self._clock.elapsed()
        over = lasting(error)
        given_up = [job for job in jobs if over or self._stopped or now >= job.deadline]
        for job in jobs:
            job.retries += 1
            job.retry_at = min(now + pause_ms(job.retries, error), job.deadline)
        self._failed += [job for job in jobs if job not in given_up]
        for job in given_up:
            job.become(State.LOST)
            self._reporter.tell_of_message(_not_known(error), error, job.message)
        self._reporter.add("unsettled", len(given_up))
        if over and not isinstance(error, InvalidArgument):  # that is the handler's mistake
            self._fail(error)
        self._ledger.settled(given_up)


def _not_known(error: Exception) -> str:
    return "may not be settled" if isinstance(error, OutcomeUnknown) else "not settled"

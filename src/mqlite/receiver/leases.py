"""Leases are renewed in time, and a lost one is told.

Two threads, neither of which runs anything of the handlers': those may hold up their event
loop or the processor as long as they like. The one that watches the deadlines never waits for
a broker.
"""

from __future__ import annotations

import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final

from mqlite.api import MQ
from mqlite.clock import Clock
from mqlite.model import MAX_BATCH
from mqlite.receiver.failures import lasting
from mqlite.receiver.jobs import Job, State
from mqlite.receiver.ledger import Ledger
from mqlite.receiver.reports import Reporter
from mqlite.receiver.waiting import NEVER, wait_until

_EARLY: Final = (0.25, 0.33)
"""Renewed when between a quarter and a third of what was left of the lease has passed."""
_TOGETHER: Final = 0.1
"""Renewals due within this share of the lease travel in one request."""


Lost = Callable[[Sequence[Job], str], None]
"""Told which leases are gone, and what has become of them."""


class Rounds(ABC):
    """A thread that looks at all held messages when the first of them is due."""

    def __init__(self, name: str, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._next = NEVER
        self._poke = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=f"mqlite {name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        self._stopped = True
        self._poke.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def due(self, at: int) -> None:
        """Something new is due then."""
        if at < self._next:
            self._poke.set()

    def _run(self) -> None:
        while True:
            # What comes from here on pokes.
            self._poke.clear()
            if self._stopped:
                return
            self._next = NEVER
            self._next = self._round(self._clock.elapsed())
            wait_until(self._clock, self._next, self._poke)

    @abstractmethod
    def _round(self, now: int) -> int:
        """Do what is due; answers when the next thing is."""


class Watch(Rounds):
    """Tells of leases that have run out."""

    def __init__(self, ledger: Ledger, clock: Clock, lost: Lost) -> None:
        super().__init__("lease watch", ledger, clock)
        self._lost = lost

    def _round(self, now: int) -> int:
        live = [job for job in self._ledger.held() if job.state is State.HELD]
        self._lost([job for job in live if job.deadline <= now], "ran out")
        return min((job.deadline for job in live if job.deadline > now), default=NEVER)


class Renewer(Rounds):
    """Renews leases well before they end, many in one request."""

    def __init__(
        self,
        mq: MQ,
        ledger: Ledger,
        clock: Clock,
        reporter: Reporter,
        lost: Lost,
        fail: Callable[[BaseException], None],
    ) -> None:
        super().__init__("lease renewal", ledger, clock)
        self._mq = mq
        self._reporter = reporter
        self._lost = lost
        self._fail = fail
        self._failing = False

    def plan(self, job: Job) -> None:
        """Decide when to renew it."""
        lease_ms = job.lease_ms or job.deadline - self._clock.elapsed()
        job.renew_at = job.deadline - int(lease_ms * (1 - random.uniform(*_EARLY)))

    def _round(self, now: int) -> int:
        live = [job for job in self._ledger.held() if _wants_renewal(job)]
        due = [job for job in live if job.renew_at <= now]
        if due:
            due = [j for j in live if j.renew_at <= now + (j.deadline - now) * _TOGETHER]
            for start in range(0, len(due), MAX_BATCH):
                self.renew(due[start : start + MAX_BATCH])
        return min((job.renew_at for job in live if _wants_renewal(job)), default=NEVER)

    def renew(self, jobs: Sequence[Job]) -> None:
        """Renew these now, on whatever thread."""
        asked = self._clock.elapsed()
        try:
            results = self._mq.renew_batch(jobs[0].queue, [job.lease for job in jobs])
        except Exception as error:
            self._not_renewed(jobs, error)
            return
        self._failing = False
        for job, result in zip(jobs, results, strict=True):
            if result.ok:
                job.renewed(asked, result)
                self.plan(job)
            else:
                job.renew_at = NEVER
        # Of one that is being settled this says nothing: it may just have been.
        self._lost([j for j, r in zip(jobs, results, strict=True) if not r.ok], "was lost")

    def _not_renewed(self, jobs: Sequence[Job], error: Exception) -> None:
        """Tell it once, and try again while the leases last."""
        if not self._failing:
            self._reporter.tell_of_queue("cannot renew leases of", error)
        if lasting(error):
            self._fail(error)
        self._failing = not lasting(error)
        now = self._clock.elapsed()
        for job in jobs:
            job.renew_at = now + max((job.deadline - now) // 4, 100)


def _wants_renewal(job: Job) -> bool:
    return job.state in (State.HELD, State.SETTLING) and job.renew_at < job.deadline

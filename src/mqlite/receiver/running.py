"""One run of a receiver: claim, handle, settle, drain."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from mqlite.errors import Closed, LockLost, MqliteError, OutcomeUnknown
from mqlite.messages import Message
from mqlite.receiver.handlers import Runner
from mqlite.receiver.jobs import Job
from mqlite.receiver.leases import Renewer, Watch
from mqlite.receiver.ledger import Ledger
from mqlite.receiver.options import Settings
from mqlite.receiver.outcomes import RELEASE, Outcome
from mqlite.receiver.polling import Poller, Source
from mqlite.receiver.reports import Reporter
from mqlite.receiver.settling import Settler
from mqlite.receiver.verdicts import Verdicts
from mqlite.receiver.waiting import wait_until

HARD_STOP_MS: Final = 1000
"""How long a cancelled handler has to end, and after that the last settlements have."""
GATHER_SECONDS: Final = 0.001
"""What a claim over HTTP waits for more slots to become free: less than a round trip takes."""


class Run:
    """The threads that claim, renew, watch and settle; handlers run where `runner` runs them.

    Safe to use from any thread. `stop` begins the drain, `abandon` cuts it short.
    """

    def __init__(
        self,
        source: Source,
        settings: Settings,
        reporter: Reporter,
        give: Callable[[Message], Job],
    ) -> None:
        self.error: BaseException | None = None
        self.clean = True
        self._settings = settings
        self._reporter = reporter
        self._give = give
        self._verdicts = Verdicts(settings, reporter)
        self._clock = clock = source.clock
        self._poke = threading.Event()
        self._stop = threading.Event()
        self._stop_by = 0
        self._hurried = False
        self._failing = threading.Lock()
        gather = GATHER_SECONDS if source.remote else 0
        self._ledger = Ledger(settings.concurrency, self._poke.set, gather=gather)
        self._poller = Poller(source, settings, reporter)
        name = f"mqlite claims {settings.queue}"
        self._claims = threading.Thread(target=self._claim, name=name, daemon=True)
        self._watch = Watch(self._ledger, clock, self._lost)
        self._renewer = Renewer(source.calls, self._ledger, clock, reporter, self._lost, self.fail)
        self._settler = Settler(
            source.calls, settings.queue, self._ledger, clock, reporter, self.fail
        )

    def start(self, runner: Runner, finished: Callable[[], object]) -> None:
        """Begin; `finished` is called when all is done, on a thread of the run's."""
        self._runner = runner
        self._finished = finished
        self._settler.start()
        self._watch.start()
        if self._settings.auto_renew:
            self._renewer.start()
        self._claims.start()
        name = f"mqlite receiver {self._settings.queue}"
        threading.Thread(target=self._conduct, name=name, daemon=True).start()

    def stop(self) -> None:
        """Claim nothing more; what is running may finish."""
        if not self._stopping:
            self._stop_by = self._clock.elapsed() + self._settings.drain_ms
        self._stop.set()
        self._ledger.stop()
        self._poller.stop()
        self._poke.set()

    @property
    def _stopping(self) -> bool:
        return self._stop.is_set()

    @property
    def running(self) -> int:
        """How many messages are with handlers."""
        return len(self._ledger.running())

    def abandon(self) -> None:
        """Hand everything back at once."""
        self._hurried = True
        self.stop()

    def fail(self, error: BaseException) -> None:
        """Stop because of this; the first one is what the run ends with."""
        with self._failing:
            if self.error is None and not (self._stopping and isinstance(error, MqliteError)):
                self.error = error
        self.stop()

    def closed(self) -> None:
        """The queue's handle is being closed under it."""
        if not self._stopping:
            error = Closed()
            self._reporter.tell_of_queue("stopped receiving from", error)
            self.fail(error)

    def ended(self, job: Job, decided: Outcome | BaseException) -> None:
        """The handler of this message has decided, or failed."""
        if job.forfeited:
            return
        outcome = self._verdicts.on(job, decided)
        if not isinstance(decided, Exception | asyncio.CancelledError):
            self.fail(decided)  # the handler's thread or task was told to exit
        if job.settled:
            self._reporter.count(job.outcome)
        elif job.hold():
            job.outcome = outcome
            self._ledger.ended(job, settles=True)
            self._settler.put(job)
            return
        elif job.after_settling(partial(self.ended, job, outcome)):
            return  # another thread or task of the handler's is about to settle it
        else:
            self._lost([job], "ran out")
        self._ledger.ended(job, settles=False)

    def _lost(self, jobs: Sequence[Job], how: str) -> None:
        """First tell all their handlers: whoever else is told may take long."""
        lost = [job for job in jobs if job.lose()]
        self._reporter.add("lost", len(lost))
        for job in lost:
            self._reporter.tell_of_message(
                "lease lost", LockLost(f"the lease on {job} {how}"), job.message
            )

    def _conduct(self) -> None:
        self._stop.wait()
        try:
            self._drain()
        finally:
            self._runner.stop()
            for part in (self._settler, self._watch, self._renewer):
                part.stop(HARD_STOP_MS / 1000)
            self._claims.join(HARD_STOP_MS / 1000)
            self._give_up()
            self._finished()

    def _claim(self) -> None:
        """A thread of its own: the drain shall not wait for a broker that does not answer."""
        try:
            while reserved := self._ledger.reserve(self._settings.prefetch):
                self._begin(self._claimed(reserved))
        except BaseException as error:
            self._reporter.tell_of_queue("stopped receiving from", error)
            self.fail(error)
        finally:
            self._poller.close()

    def _claimed(self, reserved: int) -> list[Job]:
        jobs: list[Job] = []
        try:
            jobs += [self._give(message) for message in self._poller.receive(reserved)]
        finally:
            self._ledger.admit(jobs, reserved)
        return jobs

    def _begin(self, jobs: list[Job]) -> None:
        if jobs and not self._stopping:
            jobs = self._look_after(jobs)
        if jobs and not self._stopping:
            self._runner.start(jobs)
            jobs = self._runner.unstarted() if self._stopping else []
        self._hand_back(jobs)

    def _look_after(self, jobs: list[Job]) -> list[Job]:
        """Have their leases renewed and watched; answers those that are still ours."""
        now = self._clock.elapsed()
        if late := [job for job in jobs if job.deadline - now < job.lease_ms // 4]:
            # A long poll may have used up what is sure to be left; so make sure.
            self._renewer.renew(late)
            gone = [job for job in late if job.lost]
            self._lost(gone, "ran out before its handler began")
            for job in gone:
                self._ledger.ended(job, settles=False)
                jobs.remove(job)
        for job in jobs:
            self._renewer.plan(job)
            self._watch.due(job.deadline)
            self._renewer.due(job.renew_at)
        return jobs

    def _hand_back(self, jobs: Sequence[Job]) -> None:
        """Release messages whose handlers have not begun, or will not end in time."""
        for job in jobs:
            held = job.forfeit(RELEASE)
            self._ledger.ended(job, settles=held)
            if held:
                self._settler.put(job)

    def _drain(self) -> None:
        self._hand_back(self._runner.unstarted())
        self._wait(self._stop_by, hurry=True)
        if running := self._ledger.running():
            self.clean = False
            if self._runner.cut_off(running):
                self._wait(self._clock.elapsed() + HARD_STOP_MS, hurry=False)
            self._hand_back(self._ledger.running())
        if not self._ledger.empty:
            self._wait(self._clock.elapsed() + HARD_STOP_MS, hurry=False)

    def _give_up(self) -> None:
        """What is still held now, the queue has not answered about."""
        if self._claims.is_alive():
            unknown = OutcomeUnknown("the last receive was not answered before the receiver ended")
            self._reporter.tell_of_queue("may have claimed messages of", unknown)
        for job in self._ledger.held():
            self.clean = False
            self._reporter.add("unsettled")
            error = OutcomeUnknown(f"{job} was not settled before the receiver ended")
            self._reporter.tell_of_message("may not be settled", error, job.message)

    def _wait(self, until: int, *, hurry: bool) -> None:
        """Until nothing is held any more, at most until then; `hurry`: or until somebody has no
        time for that."""
        while True:
            self._poke.clear()
            done = self._ledger.empty or (hurry and self._hurried)
            if done or self._clock.elapsed() >= until:
                return
            wait_until(self._clock, until, self._poke)

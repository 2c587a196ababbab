"""Runs the maintenance passes: when work falls due, and at their cadence in any case."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from time import monotonic
from typing import Any, Final

from mqlite.clock import Clock
from mqlite.engine.steps import Operation, Pass
from mqlite.observation.maintenance import MaintenanceMeter
from mqlite.stores.deadlines import NEVER, UNKNOWN, Deadlines
from mqlite.stores.plans import Stop, drive

_MIN_GAP_S: Final = 0.005
"""Between two runs of a pass: one that leaves due work behind must not spin."""


class Maintenance:
    """The passes of one store, each alone, in their order. A failing pass is reported, and
    tried again at its cadence."""

    def __init__(
        self,
        passes: Sequence[Pass],
        run: Callable[[Operation[Any]], Any],
        clock: Clock,
        deadlines: Deadlines,
        meter: MaintenanceMeter,
    ) -> None:
        self._passes = passes
        self._run_operation = run
        self._clock = clock
        self._deadlines = deadlines
        self._meter = meter
        self._stop = Stop(threading.Event())
        self._alone = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ran: dict[str, float] = {}
        self._asked: set[str] = set()
        meter.declare([each.name for each in passes])

    def start(self) -> None:
        """Run the passes in a thread of their own from here on."""
        self._deadlines.on_sooner = self._stop.event.set
        self._meter.enable([each.name for each in self._passes])
        self._thread = threading.Thread(target=self._loop, name="mqlite-maintenance", daemon=True)
        self._thread.start()

    def run_all(self) -> None:
        """Every pass once, in order."""
        for each in self._passes:
            self._run(each)

    def ask(self, name: str) -> None:
        """Run the pass of this name soon. Any thread may ask."""
        self._asked.add(name)
        self._stop.event.set()

    def stop(self) -> None:
        """Let what runs finish its operation, and start nothing more."""
        self._stop.request()
        if self._thread is not None:
            self._thread.join()

    def _loop(self) -> None:
        started = monotonic()
        for each in self._passes:
            # What is due is unknown until a pass has looked: those look at once.
            self._ran[each.name] = float("-inf") if each.due else started
        while not self._stop.requested:
            for each in self._passes:
                if self._wait_ms(each) <= 0:
                    self._run(each)
            self._stop.event.clear()
            wait_ms = min((self._wait_ms(each) for each in self._passes), default=NEVER)
            if wait_ms > 0 and not self._stop.requested:
                self._clock.wait(min(self._clock.now() + wait_ms, NEVER), self._stop.event)

    def _wait_ms(self, each: Pass) -> int:
        """How long from now until the pass is to run."""
        since = monotonic() - self._ran[each.name]
        if since >= each.every_ms / 1000 or each.name in self._asked:
            return 0
        cadence = int(each.every_ms - since * 1000) + 1
        earliest = UNKNOWN if each.due is None else self._deadlines.earliest(each.due)
        if earliest == UNKNOWN:
            return cadence
        gap = int((_MIN_GAP_S - since) * 1000)
        return min(cadence, max(earliest - self._clock.now(), gap))

    def _run(self, each: Pass) -> None:
        self._asked.discard(each.name)
        looking = nullcontext() if each.due is None else self._deadlines.looking(each.due)
        with self._alone, self._meter.run(each.name) as run:
            try:
                with looking:
                    drive(each.start(), run.watched(self._run_operation), self._clock, self._stop)
            finally:
                self._ran[each.name] = monotonic()

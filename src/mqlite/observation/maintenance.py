"""How the maintenance of a queue fares."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from time import perf_counter
from typing import Any, Final, Protocol, TypeVar

from mqlite.observation.faults import detail, fault_of
from mqlite.observation.histograms import Durations
from mqlite.observation.reporting import Reporter
from mqlite.observation.schema import Diagnostics, ErrorDetail, MaintenanceTask, Runs
from mqlite.observation.vocabulary import STORAGE_BOUNDS, TASKS, TaskOutcome

KEPT_FAILURES: Final = 8

T = TypeVar("T")


class Named(Protocol):
    @property
    def name(self) -> str: ...


class Run:
    """One pass of a task. `errors` are what failed in it, each with the step that did."""

    def __init__(self, task: str) -> None:
        self.errors: list[tuple[str, BaseException]] = []
        self._task = task

    def watched(self, run: Callable[[Any], T]) -> Callable[[Any], T]:
        """`run`, which runs an operation, under observation."""

        def watching(operation: Named) -> T:
            try:
                return run(operation)
            except BaseException as error:
                self.errors.append((operation.name, error))
                raise

        return watching

    def ended_by(self, error: BaseException) -> None:
        """The pass gave up, if not for an operation then for something of its own."""
        if all(known is not error for _, known in self.errors):
            self.errors.append((self._task, error))


class _Task:
    """What is remembered of one task."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.enabled = False
        self.runs = Runs(success=0, error=0, interrupted=0)
        self.durations = Durations(STORAGE_BOUNDS)
        self.outcome: TaskOutcome = "never"
        self.last_run = 0
        self.last_success = 0
        self.streak = 0
        self.recovered = 0
        self.failures: deque[ErrorDetail] = deque(maxlen=KEPT_FAILURES)

    def snapshot(self, lag: float | None) -> MaintenanceTask:
        return MaintenanceTask(
            task=self.name,
            enabled=self.enabled,
            runs=copy(self.runs),
            duration_seconds=self.durations.snapshot(),
            last_success_at_ms=self.last_success,
            lag_seconds=lag,
            diagnostics=Diagnostics(
                outcome=self.outcome,
                last_run_at_ms=self.last_run,
                consecutive_failures=self.streak,
                recovered_at_ms=self.recovered,
                failures=list(self.failures.copy()),  # a pass may add to it meanwhile
            ),
        )


class MaintenanceMeter:
    """Counts passes. One pass runs at a time; any thread reads."""

    def __init__(self, now: Callable[[], int], reporter: Reporter) -> None:
        self._now = now
        self._reporter = reporter
        self._tasks = {name: _Task(name) for name in TASKS}

    def declare(self, tasks: Iterable[str]) -> None:
        """The store has these tasks."""
        for name in tasks:
            self._tasks.setdefault(name, _Task(name))

    def enable(self, tasks: Iterable[str]) -> None:
        """From here on these tasks run by themselves."""
        for name in tasks:
            self._tasks[name].enabled = True

    @contextmanager
    def run(self, name: str) -> Iterator[Run]:
        """Count what the block does as a pass of the task. A failure ends the pass, and is
        told to the log and to whoever observes; the block's surroundings go on. What is no
        Exception, as an interrupt from the keyboard, goes through."""
        run = Run(name)
        started = perf_counter()
        try:
            yield run
        except BaseException as error:
            run.ended_by(error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._ended(self._tasks[name], run, perf_counter() - started)

    def snapshot(self, lags: Mapping[str, float]) -> list[MaintenanceTask]:
        return [task.snapshot(lags.get(name)) for name, task in self._tasks.items()]

    def _ended(self, task: _Task, run: Run, seconds: float) -> None:
        task.durations.add(seconds)
        task.last_run = self._now()
        if not run.errors:
            self._succeeded(task)
            return
        failed = False
        for step, error in run.errors:
            fault = fault_of(error)
            found = detail(error, fault, step, task.last_run)
            if fault.interrupted:
                self._reporter.interrupted("maintenance.interrupted", found, task=task.name)
            else:
                failed = True
                task.failures.append(found)
                self._reporter.failed("maintenance.failure", found, error, task=task.name)
        if failed:
            task.runs.error += 1
            task.outcome = "failed"
            task.streak += 1
        else:
            task.runs.interrupted += 1
            task.outcome = "interrupted"

    def _succeeded(self, task: _Task) -> None:
        task.runs.success += 1
        task.outcome = "ok"
        task.last_success = task.last_run
        if task.streak:
            task.recovered = task.last_run
            self._reporter.recovered(task.name, task.streak, task.last_run)
            task.streak = 0

"""How the operations of the engine end, and how long they take."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from time import perf_counter
from types import TracebackType
from typing import Final, Protocol

from mqlite.observation.faults import detail, fault_of
from mqlite.observation.histograms import Durations
from mqlite.observation.reporting import Reporter
from mqlite.observation.schema import ErrorDetail, StorageOperation
from mqlite.observation.vocabulary import (
    OPERATIONS,
    STORAGE_BOUNDS,
    STORAGE_RESULTS,
    Operation,
    Outcome,
)

_FOLD: Final = 1024
"""So many durations wait before they are counted: to append costs a sender less than a lock."""


class Asked(Protocol):
    """An operation of the engine, as far as it is measured."""

    @property
    def name(self) -> str: ...
    @property
    def reads(self) -> bool: ...


class Measured:
    """A `with` block that runs an operation: it is done, or fails, when the block ends."""

    __slots__ = ("_meter", "_operation", "_started")

    def __init__(self, meter: StorageMeter, operation: Asked) -> None:
        self._meter = meter
        self._operation = operation

    def __enter__(self) -> None:
        self._started = perf_counter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        operation = self._operation
        name: Operation = "read" if operation.reads else "write"
        if error is None:
            self._meter.succeeded(name, self._started)
        else:
            self._meter.failed(name, operation.name, self._started, error)


class _Cell:
    """Operations of one kind that ended in the same way."""

    __slots__ = ("durations", "last_error", "retries", "waiting")

    def __init__(self) -> None:
        self.durations = Durations(STORAGE_BOUNDS)
        self.retries = 0
        self.last_error: ErrorDetail | None = None
        self.waiting: deque[float] = deque()
        """Durations that are not counted yet: any thread may append without a lock."""

    def fold(self) -> None:
        """Count what waits. One thread at a time."""
        while self.waiting:
            self.durations.add(self.waiting.popleft())


class StorageMeter:
    """Counts logical operations, not statements. Any thread may use it."""

    def __init__(self, now: Callable[[], int], reporter: Reporter) -> None:
        self._now = now
        self._reporter = reporter
        self._lock = threading.Lock()
        self._pending_retries = 0
        self._cells: dict[tuple[Operation, Outcome, str], _Cell] = {
            (operation, *result): _Cell() for operation in OPERATIONS for result in STORAGE_RESULTS
        }
        self._succeeded = {operation: self._cells[operation, "ok", ""] for operation in OPERATIONS}

    def succeeded(self, operation: Operation, started: float) -> None:
        """An operation is done that was asked for at `started` (seconds, `perf_counter`)."""
        cell = self._succeeded[operation]
        waiting = cell.waiting
        waiting.append(perf_counter() - started)
        if len(waiting) >= _FOLD or self._pending_retries:
            self._ended(operation, cell)

    def failed(self, operation: Operation, step: str, started: float, error: BaseException) -> None:
        """An operation came to nothing. `step` is its name; `started` as of `succeeded`."""
        fault = fault_of(error)
        found = detail(error, fault, step, self._now())
        cell = self._cells[operation, fault.outcome, fault.code]
        cell.last_error = found
        cell.waiting.append(perf_counter() - started)
        self._ended(operation, cell)
        if fault.interrupted:
            self._reporter.interrupted("storage.interrupted", found, operation=operation)
        elif fault.outcome != "rejected":
            self._reporter.failed("storage.failure", found, error, operation=operation)

    def retried(self) -> None:
        """What was refused for the moment is tried again. Counted with the next operation
        that ends and writes: the one that retried, unless others gave up meanwhile."""
        with self._lock:
            self._pending_retries += 1

    def snapshot(self) -> list[StorageOperation]:
        with self._lock:
            for cell in self._cells.values():
                cell.fold()
            return [
                StorageOperation(
                    operation=operation,
                    outcome=outcome,
                    error_code=code,
                    count=cell.durations.count,
                    retries=cell.retries,
                    duration_seconds=cell.durations.snapshot(),
                    last_error=cell.last_error,
                )
                for (operation, outcome, code), cell in self._cells.items()
            ]

    def _ended(self, operation: Operation, cell: _Cell) -> None:
        with self._lock:
            cell.fold()
            if operation != "read":
                cell.retries += self._pending_retries
                self._pending_retries = 0

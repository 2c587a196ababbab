"""Runs operations that only read, beside the writer."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Final, TypeVar

from mqlite.clock import Clock
from mqlite.engine.steps import Operation, Row, Statement
from mqlite.errors import Closed, Unavailable
from mqlite.stores.names import NoNames
from mqlite.stores.sqlite.failures import refuse
from mqlite.stores.sqlite.runner import Runner

T = TypeVar("T")

MAX_PENDING: Final = 1_024
SNAPSHOT_S: Final = 1.0
"""A snapshot keeps the log from being reset; no reader holds one for longer."""


class _PagedRunner(Runner):
    """Reads on in a new snapshot when the present one has become old."""

    def __init__(self, cursor: sqlite3.Cursor, clock: Clock) -> None:
        super().__init__(cursor, clock, NoNames())
        self._since = 0.0

    def begin(self) -> None:
        self._execute("BEGIN")
        self._since = monotonic()

    def end(self) -> None:
        self.effects.clear()
        self._execute("ROLLBACK")

    def _statement(self, step: Statement) -> list[Row]:
        if monotonic() - self._since >= SNAPSHOT_S:
            self.end()
            self.begin()
        return super()._statement(step)


class Reader:
    """One read-only connection, one operation at a time."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        self._connection = connection
        self._runner = _PagedRunner(connection.cursor(), clock)
        self._lock = threading.Lock()
        self._finished = False
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="mqlite-reader")
        self._room = threading.BoundedSemaphore(MAX_PENDING)

    def run(self, operation: Operation[T], deadline: float) -> T:
        """The operation's result. Raises what it raises, and Unavailable where its turn
        does not come before `deadline` (monotonic)."""
        return self.look(lambda _: self._read(operation), deadline)

    async def run_async(self, operation: Operation[T], deadline: float) -> T:
        """`run` for a task, on the reader's own thread."""
        if not self._room.acquire(blocking=False):
            raise _overloaded()
        try:
            reading = self._executor.submit(self.run, operation, deadline)
        except RuntimeError:  # the executor is shut down
            self._room.release()
            raise Closed from None
        reading.add_done_callback(lambda _: self._room.release())
        return await asyncio.wrap_future(reading)

    def look(self, question: Callable[[sqlite3.Connection], T], deadline: float) -> T:
        """What `question` answers of the connection. Raises Unavailable."""
        left = deadline - monotonic()
        if left <= 0 or not self._lock.acquire(timeout=left):
            raise _overloaded()
        try:
            if self._finished:
                raise Closed
            return question(self._connection)
        except sqlite3.Error as error:
            refuse(error)
            raise
        finally:
            self._lock.release()

    @property
    def busy(self) -> bool:
        """Whether somebody reads."""
        return self._lock.locked()

    def finish(self) -> None:
        """Wait for what was admitted; nothing reads from here on."""
        self._executor.shutdown()
        with self._lock:
            self._finished = True

    def _read(self, operation: Operation[T]) -> T:
        self._runner.begin()
        try:
            return self._runner.run(operation)
        finally:
            self._runner.end()


def _overloaded() -> Unavailable:
    return Unavailable("too many reads wait for the database", reason="overloaded", retry_after=1)

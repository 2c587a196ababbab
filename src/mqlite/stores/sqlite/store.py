"""The store an embedded queue stands on: a SQLite file, or memory."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from time import monotonic
from typing import Any, Final, TypeVar

from mqlite.clock import Clock, SystemClock
from mqlite.engine.steps import Operation, Pass
from mqlite.errors import Closed, InTransaction, WrongProcess
from mqlite.model import StoreStatus
from mqlite.observation.recorder import Recorder
from mqlite.observation.schema import Pool
from mqlite.observation.storage import Measured
from mqlite.stores.callers import in_own_transaction
from mqlite.stores.deadlines import Deadlines
from mqlite.stores.effects import Publisher
from mqlite.stores.maintenance import Maintenance
from mqlite.stores.names import NameCache
from mqlite.stores.plans import Stop, drive
from mqlite.stores.sqlite import connection as connections, ledger, probing
from mqlite.stores.sqlite.admission import MAX_PENDING, MAX_PENDING_BYTES, WAIT_S, Line
from mqlite.stores.sqlite.committer import Committer
from mqlite.stores.sqlite.failures import refuse
from mqlite.stores.sqlite.foreign import ForeignCommits
from mqlite.stores.sqlite.housekeeping import Housekeeper
from mqlite.stores.sqlite.location import parse_location
from mqlite.stores.sqlite.ownership import Ownership
from mqlite.stores.sqlite.preflight import check_file, check_library
from mqlite.stores.sqlite.probing import Probe
from mqlite.stores.sqlite.reader import Reader
from mqlite.stores.sqlite.runner import Runner
from mqlite.stores.sqlite.transaction import AsyncTransaction, Transaction, refuse_inside
from mqlite.stores.sqlite.transactions import Transactions
from mqlite.stores.sqlite.watch import Watch
from mqlite.stores.sqlite.writer import Writer
from mqlite.stores.waiters import Waiters

T = TypeVar("T")

CLOSE_S: Final = 30.0

_CHECKPOINT: Final = "checkpoint"
_CHECKPOINT_EVERY_MS: Final = 1_000
_TRANSACTIONS_EVERY_MS: Final = 1_000
_RECLAIM_EVERY_MS: Final = 60_000


class SqliteStore:
    """Runs engine operations on one database it owns. Safe to share between threads and
    event loops, not between processes.

    Public parts: `clock`; `waiters`, where receivers wait; `names`, what names stand for;
    `recorder`, what was measured;
    `deadlines`; `events`, the listeners that are told of committed message events, on any
    thread: they must be quick and run no operation.
    """

    def __init__(
        self,
        database: str | os.PathLike[str],
        *,
        clock: Clock | None = None,
        synchronous: str = "NORMAL",
        logger: logging.Logger | None = None,
        max_pending: int = MAX_PENDING,
        max_pending_bytes: int = MAX_PENDING_BYTES,
    ) -> None:
        """Open a path, `file:` URI or `:memory:` and bring its schema up to date.

        With a `clock` no background thread runs: see `maintain`. At most `max_pending`
        operations, weighing `max_pending_bytes`, wait for the writer. Raises
        InvalidArgument, DatabaseLocked, SchemaMismatch, and Unavailable.
        """
        self.location = parse_location(database)
        synchronous = connections.parse_synchronous(synchronous)
        check_library()
        self.clock: Clock = clock or SystemClock()
        self.closing = False
        self.waiters = Waiters(self.clock)
        self.deadlines = Deadlines()
        self.names = NameCache()
        self._logger = logger or logging.getLogger("mqlite")
        self.recorder = Recorder(self.clock.now, self._name_of, self._logger)
        self._meter = self.recorder.storage
        self._background = clock is None
        self._pid = os.getpid()
        self._closing = threading.Lock()
        self._closed = False
        self._resources = ExitStack()
        with ExitStack() as undo:
            self._open(undo, synchronous, Line(max_pending, max_pending_bytes))
            self._resources = undo.pop_all()

    def _open(self, undo: ExitStack, synchronous: str, line: Line) -> None:
        path = self.location.path
        if path is not None:
            undo.callback(Ownership(path).release)
            check_file(self.location)
        connection = connections.open_writer(self.location, synchronous)
        undo.callback(connection.close)
        try:
            connections.patiently(lambda: ledger.migrate(connection, self.clock.now()))
        except sqlite3.Error as error:
            refuse(error, str(self.location))
            raise
        connections.end_waiting(connection)
        self._connection = connection
        self._pragmas = connections.settings(connection)
        self._warnings = connections.warnings(connection, self.location)
        publisher = Publisher(self.waiters, self.deadlines, self.recorder.effects, self._logger)
        self.events = publisher.listeners
        self._foreign = ForeignCommits(connection, self._logger)
        self._waits_for_itself = partial(in_own_transaction, path) if path else bool
        runner = Runner(connection.cursor(), self.clock, self.names, self.deadlines.earliest)
        self._committer = Committer(
            connection,
            runner,
            self.names,
            publisher,
            self._foreign,
            self.clock,
            self._waits_for_itself,
        )
        self._committer.on_retry = self._meter.retried
        self._line = line
        self._writer = Writer(
            self._committer, line, self._foreign, self._logger, self._waits_for_itself
        )
        self._transactions = Transactions(
            self._committer, connection, self._writer, self._meter, self._logger
        )
        self._watch = Watch(self._foreign, self._committer, self._writer.exclusive, self._logger)
        self._reader: Reader | None = None
        self._seeker: Reader | None = None
        self._house: Housekeeper | None = None
        if path is not None:
            second = connections.open_second(self.location)
            undo.callback(second.close)
            self._house = Housekeeper(
                path, connection, second, self._committer, self._writer.exclusive
            )
            undo.callback(self._house.empty_log)
            self._reader = self._open_reader(undo)
            self._seeker = self._open_reader(undo)
        self._maintenance = self._maintained_by(())
        self._watch.look()

    def _open_reader(self, undo: ExitStack) -> Reader:
        connection = connections.open_reader(self.location)
        undo.callback(connection.close)
        return Reader(connection, self.clock)

    def run(
        self,
        operation: Operation[T],
        timeout: float = WAIT_S,
        abandoned: Callable[[T], object] | None = None,
    ) -> T:
        """The operation's result, committed. Waits at most `timeout` seconds for its turn;
        a committed result whose caller was interrupted while it waited is given to
        `abandoned`. Raises what the operation raises, Unavailable (nothing was written),
        Closed, InTransaction, and WrongProcess."""
        self.admit()
        deadline = monotonic() + timeout
        with Measured(self._meter, operation):
            if operation.reads and self._reader is not None:
                return self._reader.run(operation, deadline)
            return self._writer.run(operation, deadline, abandoned)

    async def run_async(
        self,
        operation: Operation[T],
        timeout: float = WAIT_S,  # noqa: ASYNC109 - of the wait for its turn, not of the call
        abandoned: Callable[[T], object] | None = None,
    ) -> T:
        """`run` for a task; the event loop waits for nothing. Cancelled before it started,
        the operation writes nothing; cancelled later, its committed result is given to
        `abandoned`, on any thread."""
        self.admit()
        deadline = monotonic() + timeout
        with Measured(self._meter, operation):
            if operation.reads and self._reader is not None:
                return await self._reader.run_async(operation, deadline)
            return await self._writer.run_async(operation, deadline, abandoned)

    async def seek_async(self, operation: Operation[T]) -> T:
        """`run_async` for an operation that reads a row or two: it waits neither for the writer
        nor for reads that scan."""
        self.admit()
        deadline = monotonic() + WAIT_S
        with Measured(self._meter, operation):
            if self._seeker is not None:
                return await self._seeker.run_async(operation, deadline)
            return await self._writer.run_async(operation, deadline, None)

    def post(self, operation: Operation[Any], timeout: float = WAIT_S) -> None:
        """Run an operation that admitted work left behind, also while closing; nobody is
        told its outcome. Nothing once the store is closed."""
        with suppress(Closed):
            self._writer.post(operation, monotonic() + timeout)

    def begin(self, timeout: float = WAIT_S) -> Transaction:
        """A transaction that belongs to the calling context. Raises as `run` does."""
        self.admit()
        return self._transactions.begin(monotonic() + timeout)

    async def begin_async(self, timeout: float = WAIT_S) -> AsyncTransaction:  # noqa: ASYNC109
        """`begin` for a task."""
        self.admit()
        return await self._transactions.begin_async(monotonic() + timeout)

    def maintain_with(self, passes: Sequence[Pass]) -> None:
        """Take over the engine's passes, before the store's own. Called once; without an
        injected clock they run in the background from here on."""
        self._maintenance = self._maintained_by(passes)
        if self._background:
            self._maintenance.start()
            if self._house is not None:
                self._committer.on_progress = self._look_at_log
                self._watch.start()

    def maintain(self) -> None:
        """Every pass once, in order, after a look for foreign commits."""
        self.admit()
        self._watch.look()
        self._maintenance.run_all()

    def look(self) -> None:
        """Notice now what other connections have committed. Raises Unavailable."""
        self.admit()
        self._watch.look()

    def expect_foreign_commit(self) -> None:
        """A joined connection has written, and will commit: its commit is noticed within
        milliseconds. Raises Closed, InTransaction, and WrongProcess."""
        self.admit()
        self._foreign.expect()

    def vacuum(self, *, full: bool = False) -> None:
        """Give free pages back to the disk; `full` rewrites the whole file, which nobody
        can write meanwhile. Nothing in memory. Raises Unavailable."""
        self.admit()
        if self._house is None:
            return
        if full:
            self._house.vacuum()
        else:
            drive(self._house.reclaim(), self._run_now, self.clock, Stop(threading.Event()))

    def _maintained_by(self, passes: Sequence[Pass]) -> Maintenance:
        own: list[Pass] = []
        if self._house is not None:
            own = [
                Pass("transactions", _TRANSACTIONS_EVERY_MS, self._transactions.report_long),
                Pass("reclaim", _RECLAIM_EVERY_MS, self._house.reclaim_if_due),
                Pass(_CHECKPOINT, _CHECKPOINT_EVERY_MS, self._house.checkpoint_if_due),
            ]
        return Maintenance(
            (*passes, *own), self._run_now, self.clock, self.deadlines, self.recorder.maintenance
        )

    def _run_now(self, operation: Operation[T]) -> T:
        with Measured(self._meter, operation):
            return self._writer.run(operation, monotonic() + WAIT_S)

    def _look_at_log(self) -> None:
        if self._house is not None and self._house.pressing():
            self._maintenance.ask(_CHECKPOINT)

    def status(self, queues: int = 0, subscriptions: int = 0) -> StoreStatus:
        """The state of the store; the counts are the caller's to supply. A database that
        does not answer is reported by a `ping_ms` of -1. Raises Closed, InTransaction, and
        WrongProcess."""
        self.admit()
        probe = self.probe()
        return StoreStatus(
            backend=self.location.backend,
            location=str(self.location),
            schema_version=ledger.SCHEMA_VERSION,
            ping_ms=-1 if probe.ping_s is None else round(probe.ping_s * 1000),
            db_size_bytes=probe.file_bytes or 0,
            queues=queues,
            subscriptions=subscriptions,
            wal_size_bytes=probe.log_bytes or 0,
            free_pages=probe.free_pages or 0,
            sqlite_version=sqlite3.sqlite_version,
            pragmas=self._pragmas,
            warnings=[*self._warnings, *self._present_warnings()],
        )

    def probe(self) -> Probe:
        """A look at the database and the sizes of its files."""
        return probing.probe(self._look, self.location.path, self._house, self._meter)

    def pool(self) -> Pool:
        """The connections of this store, and the waits for the one that writes."""
        readers = [each for each in (self._reader, self._seeker) if each is not None]
        return probing.pool(self._line, self._writer, readers, self._house)

    def _name_of(self, queue_id: int) -> str | None:
        queue = self.names.known_queue(queue_id)
        return None if queue is None else queue.name

    def _look(self, question: Callable[[sqlite3.Connection], T]) -> T:
        deadline = monotonic() + probing.PROBE_WAIT_S
        if self._reader is not None:
            return self._reader.look(question, deadline)
        with self._writer.exclusive(deadline):
            return question(self._connection)

    def _present_warnings(self) -> list[str]:
        found = []
        transaction = self._transactions.current
        if transaction is not None and transaction.is_long:
            found.append(
                f"a transaction has been open for {transaction.held_s:.1f} s; nothing else can be "
                "written"
            )
        if self._foreign.endangered:
            found.append(connections.LOG_RESET_WARNING)
        return found

    def close(self, timeout: float = CLOSE_S) -> None:
        """Refuse new work, wake who waits, finish what was admitted, release the file.

        Raises InTransaction where the calling context has a transaction open, or another
        keeps one open beyond `timeout` seconds: then nothing is released, and close() can
        be called again.
        """
        if os.getpid() != self._pid:
            raise _wrong_process()
        refuse_inside(self._transactions.current)
        self.closing = True
        self.waiters.close()
        with self._closing:
            if self._closed:
                return
            self._maintenance.stop()
            self._watch.stop()
            for reader in (self._reader, self._seeker):
                if reader is not None:
                    reader.finish()
            if not self._writer.finish(timeout):
                raise InTransaction(
                    f"a transaction has kept this queue from closing for {timeout:g} s"
                )
            self._transactions.shutdown()
            self._closed = True
            self._resources.close()

    def admit(self) -> None:
        """Raises where no operation may be run from here now: Closed, InTransaction,
        WrongProcess."""
        if self.closing:
            raise Closed
        if os.getpid() != self._pid:
            raise _wrong_process()
        if self._transactions.current is not None:
            refuse_inside(self._transactions.current)


def _wrong_process() -> WrongProcess:
    return WrongProcess(
        "this queue was opened before the process forked: open it again in the child"
    )

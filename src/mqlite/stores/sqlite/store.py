"""The store an embedded queue stands on: a SQLite file, or memory."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from time import monotonic
from typing import Any, Final, Self, TypeVar

from mqlite.clock import Clock, SystemClock
from mqlite.engine.steps import Operation, Pass, Plan
from mqlite.errors import Closed, InTransaction, Unavailable, WrongProcess
from mqlite.model import StoreStatus
from mqlite.stores.callers import in_own_transaction
from mqlite.stores.deadlines import Deadlines
from mqlite.stores.effects import Publisher
from mqlite.stores.maintenance import Maintenance
from mqlite.stores.names import NameCache
from mqlite.stores.plans import Stop, drive
from mqlite.stores.sqlite import connection as connections, ledger
from mqlite.stores.sqlite.admission import MAX_PENDING, MAX_PENDING_BYTES, Line
from mqlite.stores.sqlite.committer import Committer
from mqlite.stores.sqlite.connection import BUSY_SLICE_MS
from mqlite.stores.sqlite.failures import refuse
from mqlite.stores.sqlite.foreign import ForeignCommits
from mqlite.stores.sqlite.housekeeping import Housekeeper
from mqlite.stores.sqlite.location import Location, bytes_on_disk, parse_location
from mqlite.stores.sqlite.ownership import Ownership
from mqlite.stores.sqlite.preflight import check_file, check_library
from mqlite.stores.sqlite.reader import Reader
from mqlite.stores.sqlite.runner import Runner
from mqlite.stores.sqlite.transaction import AsyncTransaction, Transaction, refuse_inside
from mqlite.stores.sqlite.watch import Watch
from mqlite.stores.sqlite.writer import Writer
from mqlite.stores.waiters import Waiters

T = TypeVar("T")

WAIT_S: Final = 5.0
CLOSE_S: Final = 30.0

_CHECKPOINT: Final = "checkpoint"
_CHECKPOINT_EVERY_MS: Final = 1_000
_TRANSACTIONS_EVERY_MS: Final = 1_000
_RECLAIM_EVERY_MS: Final = 60_000


class SqliteStore:
    """Runs engine operations on one database it owns. Safe to share between threads and
    event loops, not between processes.

    Public parts: `clock`; `waiters`, where receivers wait; `names`, what names stand for;
    `deadlines`; `events`, the listeners that are told of committed message events, on any
    thread: they must be quick and run no operation.
    """

    def __init__(
        self,
        location: Location,
        *,
        clock: Clock | None = None,
        synchronous: str = "NORMAL",
        logger: logging.Logger | None = None,
        max_pending: int = MAX_PENDING,
        max_pending_bytes: int = MAX_PENDING_BYTES,
    ) -> None:
        """Opens the database; see `open`."""
        synchronous = connections.parse_synchronous(synchronous)
        check_library()
        self.location = location
        self.clock: Clock = clock or SystemClock()
        self.closing = False
        self.waiters = Waiters(self.clock)
        self.deadlines = Deadlines()
        self.names = NameCache()
        self._logger = logger or logging.getLogger("mqlite")
        self._background = clock is None
        self._pid = os.getpid()
        self._closing = threading.Lock()
        self._closed = False
        self._transaction: Transaction | None = None
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="mqlite-transaction")
        self._resources = ExitStack()
        with ExitStack() as undo:
            self._open(undo, synchronous, Line(max_pending, max_pending_bytes))
            self._resources = undo.pop_all()

    @classmethod
    def open(
        cls,
        database: str | os.PathLike[str],
        *,
        clock: Clock | None = None,
        synchronous: str = "NORMAL",
        logger: logging.Logger | None = None,
        max_pending: int = MAX_PENDING,
        max_pending_bytes: int = MAX_PENDING_BYTES,
    ) -> Self:
        """Open a path, `file:` URI or `:memory:` and bring its schema up to date.

        With a `clock` no background thread runs: see `maintain`. At most `max_pending`
        operations, weighing `max_pending_bytes`, wait for the writer. Raises
        InvalidArgument, DatabaseLocked, SchemaMismatch, and Unavailable.
        """
        return cls(
            parse_location(database),
            clock=clock,
            synchronous=synchronous,
            logger=logger,
            max_pending=max_pending,
            max_pending_bytes=max_pending_bytes,
        )

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
            refuse(error)
            raise
        connections.end_waiting(connection)
        self._connection = connection
        self._pragmas = connections.settings(connection)
        self._warnings = connections.warnings(connection, self.location)
        publisher = Publisher(self.waiters, self.deadlines, self._logger)
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
        self._writer = Writer(
            self._committer, line, self._foreign, self._logger, self._waits_for_itself
        )
        self._watch = Watch(self._foreign, self._committer, self._writer.exclusive, self._logger)
        self._reader: Reader | None = None
        self._house: Housekeeper | None = None
        if path is not None:
            second = connections.open_second(self.location)
            undo.callback(second.close)
            self._house = Housekeeper(
                path, connection, second, self._committer, self._writer.exclusive
            )
            undo.callback(self._house.empty_log)
            reading = connections.open_reader(self.location)
            undo.callback(reading.close)
            self._reader = Reader(reading, self.clock)
        self._maintenance = self._maintained_by(())
        self._watch.look()

    # Running operations

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
        if operation.reads and self._reader is not None:
            return self._reader.run(operation, monotonic() + timeout)
        return self._writer.run(operation, monotonic() + timeout, abandoned)

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
        if operation.reads and self._reader is not None:
            return await self._reader.run_async(operation, monotonic() + timeout)
        return await self._writer.run_async(operation, monotonic() + timeout, abandoned)

    def post(self, operation: Operation[Any], timeout: float = WAIT_S) -> None:
        """Run an operation that admitted work left behind, also while closing; nobody is
        told its outcome. Nothing once the store is closed."""
        with suppress(Closed):
            self._writer.post(operation, monotonic() + timeout)

    # Transactions of the caller's

    def begin(self, timeout: float = WAIT_S) -> Transaction:
        """A transaction that belongs to the calling context. Raises as `run` does."""
        self.admit()
        deadline = monotonic() + timeout
        self._writer.take_turn(deadline)
        transaction = self._begin(deadline)
        transaction.belongs_to_context()
        return transaction

    async def begin_async(self, timeout: float = WAIT_S) -> AsyncTransaction:  # noqa: ASYNC109
        """`begin` for a task."""
        self.admit()
        deadline = monotonic() + timeout
        await self._writer.take_turn_async(deadline)
        beginning = AsyncTransaction.begun(self._executor, lambda: self._begin(deadline))
        transaction = await self._unless_it_waits_for_itself(beginning)
        transaction.belongs_to_context()
        return transaction

    async def _unless_it_waits_for_itself(
        self, beginning: Coroutine[Any, Any, AsyncTransaction]
    ) -> AsyncTransaction:
        # The executor's thread begins, but what may hold it up belongs to this one.
        task = asyncio.ensure_future(beginning)
        doubt = self._writer.doubt()
        try:
            while not (await asyncio.wait((task,), timeout=BUSY_SLICE_MS / 1000))[0]:
                if doubt.holds():
                    raise doubt.error()
        except BaseException:
            # Not cancelled: it has begun, or failed to, in this very turn of the loop.
            if not task.cancel() and task.exception() is None:
                self._executor.submit(task.result().transaction.rollback)
            raise
        return task.result()

    def _begin(self, deadline: float) -> Transaction:
        self._transaction = Transaction(
            self._committer, self._connection, deadline, self._logger, self._writer.give_turn
        )
        return self._transaction

    # Maintenance

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
                Pass("transactions", _TRANSACTIONS_EVERY_MS, self._report_long_transaction),
                Pass("reclaim", _RECLAIM_EVERY_MS, self._house.reclaim_if_due),
                Pass(_CHECKPOINT, _CHECKPOINT_EVERY_MS, self._house.checkpoint_if_due),
            ]
        return Maintenance((*passes, *own), self._run_now, self.clock, self.deadlines, self._logger)

    def _run_now(self, operation: Operation[T]) -> T:
        return self._writer.run(operation, monotonic() + WAIT_S)

    def _report_long_transaction(self) -> Plan[None]:
        if self._transaction is not None:
            self._transaction.report_long()
        yield from ()

    def _look_at_log(self) -> None:
        if self._house is not None and self._house.pressing():
            self._maintenance.ask(_CHECKPOINT)

    # Status and close

    def status(self, queues: int = 0, subscriptions: int = 0) -> StoreStatus:
        """The state of the store; the counts are the caller's to supply. A database that
        does not answer is reported by a `ping_ms` of -1. Raises Closed, InTransaction, and
        WrongProcess."""
        self.admit()
        ping_ms, pages, free_pages, page_size = -1, 0, 0, 0
        started = monotonic()
        try:
            pages, free_pages, page_size = self._look(connections.pages)
            ping_ms = round((monotonic() - started) * 1000)
        except Unavailable as error:
            self._logger.warning("the database does not answer: %s", error)
        path = self.location.path
        return StoreStatus(
            backend="memory" if path is None else "local file",
            location=str(self.location),
            schema_version=ledger.SCHEMA_VERSION,
            ping_ms=ping_ms,
            db_size_bytes=pages * page_size if path is None else bytes_on_disk(path),
            queues=queues,
            subscriptions=subscriptions,
            wal_size_bytes=0 if self._house is None else self._house.log_bytes(),
            free_pages=free_pages,
            sqlite_version=sqlite3.sqlite_version,
            pragmas=self._pragmas,
            warnings=[*self._warnings, *self._present_warnings()],
        )

    def _look(self, question: Callable[[sqlite3.Connection], T]) -> T:
        if self._reader is not None:
            return self._reader.look(question, monotonic() + WAIT_S)
        with self._writer.exclusive(monotonic() + WAIT_S):
            return question(self._connection)

    def _present_warnings(self) -> list[str]:
        found = []
        transaction = self._transaction
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
        self._check_process()
        refuse_inside(self._transaction)
        self.closing = True
        self.waiters.close()
        with self._closing:
            if self._closed:
                return
            self._maintenance.stop()
            self._watch.stop()
            if self._reader is not None:
                self._reader.finish()
            if not self._writer.finish(timeout):
                raise InTransaction(
                    f"a transaction has kept this queue from closing for {timeout:g} s"
                )
            self._executor.shutdown()
            self._closed = True
            self._resources.close()

    def admit(self) -> None:
        """Raises where no operation may be run from here now: Closed, InTransaction,
        WrongProcess."""
        if self.closing:
            raise Closed
        self._check_process()
        if self._transaction is not None:
            refuse_inside(self._transaction)

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise WrongProcess(
                "this queue was opened before the process forked: open it again in the child"
            )

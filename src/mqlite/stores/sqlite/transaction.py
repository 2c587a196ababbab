"""Transactions a caller holds open: they belong to its context, not to its thread."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextvars import ContextVar
from time import monotonic, perf_counter
from typing import Any, Final, Self, TypeVar

from mqlite.engine.steps import Operation
from mqlite.errors import InTransaction, MqliteError, TransactionClosed
from mqlite.observation.storage import StorageMeter
from mqlite.stores.sqlite.committer import Committer, TransactionLost
from mqlite.stores.sqlite.failures import refuse, unavailable

T = TypeVar("T")

LONG_S: Final = 1.0

_held: ContextVar[tuple[Transaction, ...]] = ContextVar("mqlite_transactions", default=())


class Transaction:
    """An open transaction on the writer connection; nobody else writes meanwhile.

    `connection` is for the caller's own SQL. `done` is called once, at the end.
    """

    def __init__(
        self,
        committer: Committer,
        connection: sqlite3.Connection,
        deadline: float,
        meter: StorageMeter,
        logger: logging.Logger,
        done: Callable[[], None],
    ) -> None:
        self.connection = connection
        self._asked = perf_counter()
        self._started = monotonic()
        self.open = True
        self._reported = False
        self._committer = committer
        self._meter = meter
        self._logger = logger
        self._done = done
        try:
            committer.begin(deadline)
        except BaseException as error:
            self._end(error)
            raise

    def belongs_to_context(self) -> None:
        """Make it the calling context's, and that of contexts copied from it."""
        _held.set((*(held for held in _held.get() if held.open), self))

    def run(self, operation: Operation[T]) -> T:
        """The operation inside the transaction; it fails alone, in a savepoint of its own.
        Raises what it raises, TransactionClosed, and Unavailable."""
        self.check()
        try:
            return self._committer.run_member(operation)
        except TransactionLost as lost:
            cause = lost.__cause__
            assert cause is not None
            self._roll_back(cause)
            raise unavailable(cause) or cause from None
        except sqlite3.Error as error:
            refuse(error)
            raise

    def commit(self) -> None:
        """Commit, and only then tell what happened in it. Raises TransactionClosed, and
        Unavailable (rolled back)."""
        self.check()
        try:
            self._committer.commit()
        except BaseException as error:
            self._end(error)
            raise
        self._end()

    def rollback(self) -> None:
        """End it as if it had never been; nothing where it has ended."""
        self._roll_back(MqliteError("the caller rolled it back"))

    def _roll_back(self, why: BaseException) -> None:
        if self.open:
            try:
                self._committer.rollback()
            finally:
                self._end(why)

    @property
    def held_s(self) -> float:
        """For how long it has been open, in seconds."""
        return monotonic() - self._started

    @property
    def is_long(self) -> bool:
        """Whether it has been open for longer than it should."""
        return self.open and self.held_s >= LONG_S

    def report_long(self) -> None:
        """Log, once, that it has been open for longer than it should."""
        if self.is_long and not self._reported:
            self._reported = True
            self._logger.warning(
                "a transaction has been open for %.1f s; nothing else can be written", self.held_s
            )

    def check(self) -> None:
        """Raises TransactionClosed where it has ended, by whatever."""
        if not self.open:
            raise TransactionClosed("this transaction has been committed or rolled back")
        if not self.connection.in_transaction:
            self.rollback()
            raise TransactionClosed("an SQL statement or an error ended this transaction")

    def _end(self, error: BaseException | None = None) -> None:
        self.report_long()
        self.open = False
        if error is None:
            self._meter.succeeded("transaction", self._asked)
        else:
            self._meter.failed("transaction", "transaction", self._asked, error)
        self._done()


class AsyncTransaction:
    """A transaction for a task: every call to SQLite runs on the one thread of
    `executor`, in the order asked."""

    def __init__(self, transaction: Transaction, executor: Executor) -> None:
        self.transaction = transaction
        self._executor = executor

    @classmethod
    async def begun(cls, executor: Executor, begin: Callable[[], Transaction]) -> Self:
        """The transaction that `begin` opens, on the executor's thread. Cancelled, it is
        rolled back as soon as it is open."""
        opening = executor.submit(begin)
        try:
            return cls(await asyncio.shield(asyncio.wrap_future(opening)), executor)
        except asyncio.CancelledError:
            opening.add_done_callback(_undo)
            raise

    def belongs_to_context(self) -> None:
        """See `Transaction.belongs_to_context`."""
        self.transaction.belongs_to_context()

    async def run(self, operation: Operation[T]) -> T:
        """See `Transaction.run`."""
        return await self.call(self.transaction.run, operation)

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """A function of the caller's that uses `connection`, on the transaction's thread. Once
        asked for it runs, whether or not the task is cancelled: an end that never came would
        keep the writer for good."""
        running = self._executor.submit(function, *arguments)
        return await asyncio.shield(asyncio.wrap_future(running))

    async def commit(self) -> None:
        """See `Transaction.commit`. Cancelled, it may still commit."""
        await self.call(self.transaction.commit)

    async def rollback(self) -> None:
        """See `Transaction.rollback`."""
        await self.call(self.transaction.rollback)

    @property
    def connection(self) -> sqlite3.Connection:
        """For the caller's own SQL, inside `call`."""
        return self.transaction.connection


def _undo(opening: Future[Transaction]) -> None:
    if opening.exception() is None:
        opening.result().rollback()


def refuse_inside(transaction: Transaction | None) -> None:
    """Raises InTransaction where the calling context holds this transaction."""
    if transaction is not None and transaction.open and transaction in _held.get():
        raise InTransaction(
            "this context has an open transaction on the queue: use the transaction's own "
            "methods, or end it first"
        )

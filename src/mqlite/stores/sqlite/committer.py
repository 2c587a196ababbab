"""Transactions on the writer connection. Only the holder of the writer's turn is here."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, Final, TypeVar

from mqlite.clock import Clock
from mqlite.engine.steps import Operation
from mqlite.errors import InTransaction, Unavailable
from mqlite.stores.effects import Publisher
from mqlite.stores.names import NameCache
from mqlite.stores.sqlite.admission import Line
from mqlite.stores.sqlite.connection import SLICE_S
from mqlite.stores.sqlite.failures import is_busy, refuse, unavailable
from mqlite.stores.sqlite.foreign import ForeignCommits
from mqlite.stores.sqlite.runner import Runner
from mqlite.stores.sqlite.tickets import Ticket

T = TypeVar("T")
A = TypeVar("A")

GROUP_OPERATIONS: Final = 256
GROUP_BYTES: Final = 8 * 1024 * 1024
GROUP_S: Final = 0.02
RETRY_S: Final = 0.0005
PROGRESS_OPERATIONS: Final = 64

_ANY_SIZE: Final = 2**63


class _Unwanted(Exception):
    """Nobody waits for the transaction any more."""


class TransactionLost(Exception):
    """An error ended the whole transaction, not only the operation that met it."""


class Committer:
    """Begins, runs, commits and publishes."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        runner: Runner,
        names: NameCache,
        publisher: Publisher,
        foreign: ForeignCommits,
        clock: Clock,
        waits_for_itself: Callable[[], bool],
    ) -> None:
        self.contended = False
        """Whether another connection keeps the writer from beginning at this moment."""
        self.commits = 0
        self.on_retry: Callable[[], None] = lambda: None
        """Called when something that could not be done at once is tried again."""
        self.on_progress: Callable[[], None] = lambda: None
        """Called now and then, about every `PROGRESS_OPERATIONS` committed operations."""
        self._progress = 0
        self._connection = connection
        self._execute = connection.cursor().execute
        self._runner = runner
        self._names = names
        self._names_version = names.version
        self._publisher = publisher
        self._foreign = foreign
        self._clock = clock
        self._waits_for_itself = waits_for_itself
        self._guarded = False

    def run_alone(self, operation: Operation[T], deadline: float) -> T:
        """The operation in a transaction of its own."""
        self.begin(deadline)
        try:
            result = self._runner.run(operation)
            self._commit()
        except BaseException as error:
            self.rollback()
            if (translated := unavailable(error)) is not None:
                raise translated from error
            raise
        self.publish()
        return self.checked(result)

    def run_group(self, line: Line, done: list[Ticket]) -> None:
        """What is in the line, in one transaction; `done` holds the tickets that started,
        each with its outcome."""
        try:
            self._begin(_wanted, line, look=True)
        except _Unwanted:
            return
        except sqlite3.Error as error:
            self._refuse(line, done, error)
            return
        try:
            self._run_members(line, done)
            self._commit(len(done))
        except (sqlite3.Error, TransactionLost):
            self.rollback()
            for ticket in done:
                self._again(ticket)
        else:
            self.publish()
            for ticket in done:
                if ticket.error is None:
                    ticket.result = self.checked(ticket.result)

    def begin(self, deadline: float, *, look: bool = False) -> None:
        """Open a transaction that may write; with `look`, take over what other connections
        have to tell. Raises Unavailable at the deadline, InTransaction where the calling
        thread waits for itself."""
        try:
            self._begin(self._in_time, deadline, look=look or self._foreign.near)
        except sqlite3.Error as error:
            refuse(error)
            raise

    def run_member(self, operation: Operation[T]) -> T:
        """The operation inside the open transaction; it fails alone. Several writes are made
        in a savepoint, a single one undoes itself. Raises TransactionLost where the
        transaction did not survive it."""
        runner = self._runner
        mark = len(runner.effects)
        version = self._names.version
        self._guarded = False
        runner.before_write = self._guard
        runner.wrote_only_once = False
        try:
            result = runner.run(operation)
        except BaseException as error:
            if not self._connection.in_transaction or runner.wrote_only_once:
                raise TransactionLost from error
            if self._guarded:
                self._execute("ROLLBACK TO member")
                self._execute("RELEASE member")
            del runner.effects[mark:]
            if self._names.version != version:
                self._names.clear()
            raise
        finally:
            runner.before_write = None
        if self._guarded:
            self._execute("RELEASE member")
        return result

    def _guard(self) -> None:
        self._execute("SAVEPOINT member")
        self._guarded = True

    def commit(self) -> None:
        """Commit and publish. Raises Unavailable, rolled back."""
        try:
            self._commit()
        except sqlite3.Error as error:
            self.rollback()
            refuse(error)
            raise
        self.publish()

    def rollback(self) -> None:
        """End the open transaction, if any, as if it had never been."""
        self._runner.effects.clear()
        if self._names.version != self._names_version:
            self._names.clear()
        self._foreign.rolled_back()
        if self._connection.in_transaction:
            # A failing ROLLBACK has nothing to add to the error that led to it.
            with suppress(sqlite3.Error):
                self._execute("ROLLBACK")

    def publish(self) -> None:
        effects = self._runner.effects
        if effects:
            self._publisher.publish(effects)
            effects.clear()

    def checked(self, result: T) -> T:
        """What still holds of a result after its commit."""
        recheck = getattr(result, "recheck", None)
        return result if recheck is None else recheck(self._clock.now())

    def _begin(self, go_on: Callable[[A], None], about: A, *, look: bool) -> None:
        """`go_on(about)` is called after every slice in which the lock did not come free, and
        raises to give up."""
        if not self._try_to_begin():
            self._keep_trying(go_on, about)
        self._names_version = self._names.version
        if look:
            try:
                self._foreign.collect(self._runner.effects, self._names)
            except BaseException:
                self.rollback()
                raise

    def _keep_trying(self, go_on: Callable[[A], None], about: A) -> None:
        slice_end = monotonic() + SLICE_S
        try:
            while True:
                # SQLite's own busy handler backs off, and starves beside a busy writer.
                time.sleep(RETRY_S)
                self.on_retry()
                if self._try_to_begin():
                    return
                if monotonic() >= slice_end:
                    slice_end = monotonic() + SLICE_S
                    go_on(about)
                    self.contended = True
        finally:
            self.contended = False

    def _try_to_begin(self) -> bool:
        try:
            self._execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            return False
        return True

    def _in_time(self, deadline: float) -> None:
        if monotonic() >= deadline:
            raise Unavailable(
                "another connection holds the database file",
                reason="database_locked",
                retry_after=1,
            )
        if not self.contended and self._waits_for_itself():
            raise own_lock()

    def _commit(self, operations: int = 1) -> None:
        self._execute("COMMIT")
        self.commits += 1
        if self._foreign.collected:
            self._foreign.committed()
        self._progress += operations
        if self._progress >= PROGRESS_OPERATIONS:
            self._progress = 0
            self.on_progress()

    def _run_members(self, line: Line, done: list[Ticket]) -> None:
        until = monotonic() + GROUP_S
        room = GROUP_BYTES
        while len(done) < GROUP_OPERATIONS:
            ticket = line.take(room if done else _ANY_SIZE)
            if ticket is None:
                return
            done.append(ticket)
            room -= ticket.size
            self._run_ticket(ticket, self.run_member)
            if monotonic() >= until:
                return

    def _run_ticket(self, ticket: Ticket, run: Callable[[Operation[Any]], Any]) -> None:
        if ticket.deadline <= monotonic():
            ticket.error = Unavailable(
                "the operation's time was over before it started", reason="overloaded"
            )
            return
        assert ticket.operation is not None
        try:
            ticket.result = run(ticket.operation)
        except TransactionLost:
            raise
        except BaseException as error:
            ticket.error = unavailable(error) or error

    def _again(self, ticket: Ticket) -> None:
        ticket.error = None
        self.on_retry()
        self._run_ticket(ticket, partial(self.run_alone, deadline=ticket.deadline))

    def _refuse(self, line: Line, done: list[Ticket], error: sqlite3.Error) -> None:
        while len(done) < GROUP_OPERATIONS and (ticket := line.take(_ANY_SIZE)) is not None:
            ticket.error = unavailable(error) or error
            done.append(ticket)


def _wanted(line: Line) -> None:
    if not len(line):
        raise _Unwanted


def own_lock() -> InTransaction:
    """For a caller that waits for itself."""
    return InTransaction(
        "this thread holds the write lock of the queue's file in a transaction that is still open "
        "(a prepared connection takes it also to read): do this inside it, by "
        "mq.join(connection), or end it first"
    )

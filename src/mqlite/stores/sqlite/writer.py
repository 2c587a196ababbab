"""Who may use the writer connection, and when.

One *turn*: whoever holds it is alone on the connection. A thread that finds it free, with
nobody in the line, runs its own operation. All others line up; the writer thread serves
them in groups, or hands the turn over to one that wants the connection for itself.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from mqlite.engine.steps import Operation
from mqlite.errors import Unavailable
from mqlite.stores.sqlite.admission import Line
from mqlite.stores.sqlite.committer import Committer, own_lock
from mqlite.stores.sqlite.foreign import ForeignCommits
from mqlite.stores.sqlite.tickets import (
    AsyncTicket,
    Desk,
    Doubt,
    SyncTicket,
    Ticket,
    hand_out,
)

T = TypeVar("T")

_GIVE_WAY_S: Final = 0.001


class Writer:
    """Runs operations for threads and tasks, one transaction at a time.

    Deadlines are on the monotonic clock; at its deadline a wait ends in Unavailable.
    """

    def __init__(
        self,
        committer: Committer,
        line: Line,
        foreign: ForeignCommits,
        logger: logging.Logger,
        waits_for_itself: Callable[[], bool],
    ) -> None:
        self._committer = committer
        self._line = line
        self._foreign = foreign
        self._logger = logger
        self._waits_for_itself = waits_for_itself
        self._turn = threading.Lock()
        self._desks: WeakKeyDictionary[asyncio.AbstractEventLoop, Desk] = WeakKeyDictionary()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def run(
        self,
        operation: Operation[T],
        deadline: float,
        abandoned: Callable[[T], object] | None = None,
    ) -> T:
        """The operation's result, committed; `abandoned` is called with one whose caller
        has gone. Raises what the operation raises."""
        if not len(self._line) and self._turn.acquire(blocking=False):
            try:
                return self._committer.run_alone(operation, deadline)
            finally:
                self._turn.release()
        ticket = SyncTicket(operation, deadline, abandoned)
        self._enter(ticket)
        result: T = ticket.wait(self._line.drop, self._late, self.doubt)
        return result

    async def run_async(
        self,
        operation: Operation[T],
        deadline: float,
        abandoned: Callable[[T], object] | None,
    ) -> T:
        """`run` for a task, by the writer thread."""
        ticket = AsyncTicket(operation, deadline, abandoned)
        self._enter(ticket)
        result: T = await self._desk(ticket.loop).wait(ticket)
        return result

    def post(self, operation: Operation[Any], deadline: float) -> None:
        """Run an operation that admitted work left behind, for nobody who waits. Raises
        Closed."""
        self._start()
        self._line.follow_up(Ticket(operation, deadline))

    @contextmanager
    def exclusive(self, deadline: float) -> Iterator[None]:
        """The connection for the caller alone."""
        self.take_turn(deadline)
        try:
            yield
        finally:
            self.give_turn()

    def take_turn(self, deadline: float) -> None:
        """Wait for the turn."""
        if not len(self._line) and self._turn.acquire(blocking=False):
            return
        ticket = SyncTicket(None, deadline, self._give_back)
        self._enter(ticket)
        ticket.wait(self._line.drop, self._late, self.doubt)

    async def take_turn_async(self, deadline: float) -> None:
        """`take_turn` for a task."""
        ticket = AsyncTicket(None, deadline, self._give_back)
        self._enter(ticket)
        await self._desk(ticket.loop).wait(ticket)

    @property
    def busy(self) -> bool:
        """Whether somebody has the turn."""
        return self._turn.locked()

    def give_turn(self) -> None:
        """End a turn; any thread may."""
        self._turn.release()

    def finish(self, timeout: float) -> bool:
        """Let nobody join, serve who is in the line, and take the turn for good. False
        where somebody still has it after `timeout` seconds: call again."""
        self._line.close()
        deadline = monotonic() + timeout
        # Only the thread ends the line, so it is needed even where nobody ever joined.
        thread = self._start()
        thread.join(timeout)
        if thread.is_alive():
            return False
        return self._turn.acquire(timeout=max(0.0, deadline - monotonic()))

    def _give_back(self, _: object) -> None:
        self.give_turn()

    def _enter(self, ticket: Ticket) -> None:
        # Started first: who is in the line when it closes has a thread that serves it.
        self._start()
        self._line.join(ticket)

    def _start(self) -> threading.Thread:
        thread = self._thread
        if thread is None:
            with self._starting:
                thread = self._thread
                if thread is None:
                    thread = threading.Thread(target=self._serve, name="mqlite-writer", daemon=True)
                    thread.start()
                    self._thread = thread
        return thread

    def _desk(self, loop: asyncio.AbstractEventLoop) -> Desk:
        desk = self._desks.get(loop)
        if desk is None:
            with self._starting:
                desk = self._desks[loop] = Desk(self._line.drop, self._late, self.doubt())
        return desk

    def _late(self) -> Unavailable:
        if self._committer.contended:
            return Unavailable(
                "another connection holds the database file",
                reason="database_locked",
                retry_after=1,
            )
        return Unavailable(
            "the operation's turn did not come in time", reason="overloaded", retry_after=1
        )

    def doubt(self) -> Doubt:
        """For whoever waits outside the line."""
        return Doubt(lambda: self._committer.contended, self._waits_for_itself, own_lock)

    def _serve(self) -> None:
        while self._line.wait():
            self._turn.acquire()
            ticket = self._line.take_handover()
            if ticket is not None:
                hand_out((ticket,))
                continue
            try:
                self._serve_group()
            finally:
                self._turn.release()
            if self._foreign.recent:
                time.sleep(_GIVE_WAY_S)

    def _serve_group(self) -> None:
        done: list[Ticket] = []
        try:
            self._committer.run_group(self._line, done)
        except BaseException as error:
            self._logger.exception("the writer met an unexpected error")
            self._committer.rollback()
            for ticket in done:
                ticket.error = error
        hand_out(done)

"""Callers on their way through the writer, and how their results reach them.

Whoever waits watches its own deadline: a thread in `SyncTicket.wait`, the tasks of an
event loop by one timer of their `Desk`. So a wait is bounded even while the writer thread
is stuck in the storage.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any, Final

from mqlite.engine.steps import Operation
from mqlite.stores.sqlite.connection import SLICE_S

Drop = Callable[["Ticket"], bool]
"""Takes a ticket out of the line; False where it has already started."""

_DOUBT_AGAIN_S: Final = 1.0


class Doubt:
    """Whether whoever waits for the writer waits for itself; asked on its own thread.

    Answering is dear, so it is asked only where another connection keeps the writer from
    beginning, and after a no not again for a second.
    """

    def __init__(
        self,
        contended: Callable[[], bool],
        waits_for_itself: Callable[[], bool],
        error: Callable[[], Exception],
    ) -> None:
        self.error = error
        self._contended = contended
        self._waits_for_itself = waits_for_itself
        self._rests_until = 0.0

    def holds(self) -> bool:
        now = monotonic()
        if not self._contended() or now < self._rests_until:
            return False
        holds = self._waits_for_itself()
        if not holds:
            self._rests_until = now + _DOUBT_AGAIN_S
        return holds


class Ticket:
    """A caller in the line: with an operation for the writer thread to run, or without
    one, wanting the writer for itself. `deadline` is on the monotonic clock. `abandoned` is
    called, on any thread, with a committed result that nobody waits for any longer."""

    __slots__ = (
        "abandoned",
        "deadline",
        "error",
        "operation",
        "result",
        "settles",
        "size",
        "started",
    )

    def __init__(
        self,
        operation: Operation[Any] | None,
        deadline: float,
        abandoned: Callable[[Any], object] | None = None,
    ) -> None:
        self.operation = operation
        self.deadline = deadline
        self.abandoned = abandoned
        self.started = False
        self.size = 0 if operation is None else operation.size
        self.settles = operation is None or operation.settles
        self.result: Any = None
        self.error: BaseException | None = None

    def finish(self, loops: dict[asyncio.AbstractEventLoop, list[AsyncTicket]]) -> None:
        """The outcome is known. Nobody waits for a plain ticket's."""

    def forsaken(self) -> None:
        if self.abandoned is not None and self.error is None:
            self.abandoned(self.result)


class SyncTicket(Ticket):
    """A waiting thread."""

    __slots__ = ("_done",)

    def __init__(
        self,
        operation: Operation[Any] | None,
        deadline: float,
        abandoned: Callable[[Any], object] | None = None,
    ) -> None:
        super().__init__(operation, deadline, abandoned)
        self._done = threading.Event()

    def finish(self, loops: dict[asyncio.AbstractEventLoop, list[AsyncTicket]]) -> None:
        self._done.set()

    def wait(self, drop: Drop, late: Callable[[], Exception], doubt: Callable[[], Doubt]) -> Any:
        """The result. Raises the operation's error, `late()` at the deadline, or what
        `doubt()` has to say."""
        try:
            error = self._wait(late, doubt)
            dropped = error is not None and drop(self)
            if not dropped:
                self._done.wait()
        except BaseException:
            if not drop(self) and self.started:
                self._done.wait()
                self.forsaken()
            raise
        if error is not None and dropped:
            raise error
        if self.error is not None:
            raise self.error
        return self.result

    def _wait(self, late: Callable[[], Exception], doubt: Callable[[], Doubt]) -> Exception | None:
        """None when it is done, else why not to wait any longer."""
        doubts: Doubt | None = None
        while True:
            left = self.deadline - monotonic()
            if self._done.wait(max(0.0, min(left, SLICE_S))):
                return None
            if left <= SLICE_S:
                return late()
            doubts = doubts or doubt()
            if doubts.holds():
                return doubts.error()


class AsyncTicket(Ticket):
    """A waiting task."""

    __slots__ = ("future", "loop")

    def __init__(
        self,
        operation: Operation[Any] | None,
        deadline: float,
        abandoned: Callable[[Any], object] | None = None,
    ) -> None:
        super().__init__(operation, deadline, abandoned)
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()

    def finish(self, loops: dict[asyncio.AbstractEventLoop, list[AsyncTicket]]) -> None:
        tickets = loops.get(self.loop)
        if tickets is None:
            loops[self.loop] = [self]
        else:
            tickets.append(self)

    def settle(self) -> None:
        """Tell the task; on its loop's thread."""
        if self.future.done():
            self.forsaken()
        elif self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


def hand_out(tickets: Iterable[Ticket]) -> None:
    """Tell every caller its outcome, waking each event loop once."""
    loops: dict[asyncio.AbstractEventLoop, list[AsyncTicket]] = {}
    for ticket in tickets:
        ticket.finish(loops)
    for loop, waiting in loops.items():
        try:
            loop.call_soon_threadsafe(_settle, waiting)
        except RuntimeError:  # the loop is closed, and its tasks with it
            for forsaken in waiting:
                forsaken.forsaken()


def _settle(tickets: list[AsyncTicket]) -> None:
    for ticket in tickets:
        ticket.settle()


class Desk:
    """The waiting tasks of one event loop; used on its thread only."""

    def __init__(self, drop: Drop, late: Callable[[], Exception], doubt: Doubt) -> None:
        self._drop = drop
        self._late = late
        self._doubt = doubt
        self._waiting: dict[AsyncTicket, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, ticket: AsyncTicket) -> Any:
        """The result of a ticket in the line. Raises the operation's error, `late()` at
        the deadline, or what `doubt` has to say."""
        self._waiting[ticket] = None
        if self._timer is None:
            self._timer = ticket.loop.call_later(SLICE_S, self._tick, ticket.loop)
        try:
            return await ticket.future
        except asyncio.CancelledError:
            self._drop(ticket)
            if not ticket.future.cancelled() and ticket.future.exception() is None:
                # It was given its result, and cancelled before it could take it.
                ticket.forsaken()
            raise
        finally:
            del self._waiting[ticket]

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            now = monotonic()
            why = self._doubt.error if self._doubt.holds() else self._late
            for ticket in self._waiting:
                over = ticket.deadline <= now or why is not self._late
                if over and not ticket.future.done() and self._drop(ticket):
                    ticket.future.set_exception(why())
        finally:
            self._timer = loop.call_later(SLICE_S, self._tick, loop) if self._waiting else None

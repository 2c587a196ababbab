"""The line in front of the writer, bounded by number and bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from time import monotonic
from typing import Final

from mqlite.errors import Closed, Unavailable
from mqlite.stores.sqlite.tickets import Ticket

WAIT_S: Final = 5.0
"""How long anything waits for the writer, unless its caller says otherwise."""
MAX_PENDING: Final = 16_384
MAX_PENDING_BYTES: Final = 64 * 1024 * 1024
_SEND_SHARE: Final = 0.75
"""What sends may fill. The rest is kept for settles and renewals: refused, they would
turn work that is done into work that is done twice."""


class Line:
    """Who waits for the writer, first come first served. Thread-safe."""

    def __init__(self, max_pending: int = MAX_PENDING, max_bytes: int = MAX_PENDING_BYTES) -> None:
        self._limits = {
            True: (max_pending, max_bytes),
            False: (int(max_pending * _SEND_SHARE), int(max_bytes * _SEND_SHARE)),
        }
        self.waits = 0
        """How many have waited, and come to their turn."""
        self.waited_s = 0.0
        """For how long, all of them together."""
        self._tickets: OrderedDict[Ticket, float] = OrderedDict()
        self._bytes = 0
        self._closed = False
        self._ended = False
        self._idle = False
        self._changed = threading.Condition(threading.Lock())

    def __len__(self) -> int:
        return len(self._tickets)

    def join(self, ticket: Ticket) -> None:
        """Raises Closed, and Unavailable where the line is full."""
        with self._changed:
            if self._closed:
                raise Closed
            most, most_bytes = self._limits[ticket.settles]
            waiting = len(self._tickets)
            # Whatever its size, an operation may wait alone: it could never be admitted.
            if waiting >= most or (waiting and self._bytes + ticket.size > most_bytes):
                raise Unavailable(
                    f"{waiting} operations ({self._bytes} bytes) already wait for the database",
                    reason="overloaded",
                    retry_after=1,
                )
            self._append(ticket)

    def follow_up(self, ticket: Ticket) -> None:
        """Join with work that admitted work left behind: no bound, also while closing.
        Raises Closed once the line has ended."""
        with self._changed:
            if self._ended:
                raise Closed
            self._append(ticket)

    def drop(self, ticket: Ticket) -> bool:
        """Leave the line; False where the ticket has already started."""
        with self._changed:
            if ticket not in self._tickets:
                return False
            del self._tickets[ticket]
            self._bytes -= ticket.size
            return True

    def wait(self) -> bool:
        """Until somebody waits; False when nobody ever will."""
        with self._changed:
            while not self._tickets:
                if self._closed:
                    self._ended = True
                    return False
                self._idle = True
                self._changed.wait()
                self._idle = False
            return True

    def take(self, room: int) -> Ticket | None:
        """The next operation, if it weighs no more than `room` bytes."""
        with self._changed:
            ticket = next(iter(self._tickets), None)
            if ticket is None or ticket.operation is None or ticket.size > room:
                return None
            self._remove_first(ticket)
            return ticket

    def take_handover(self) -> Ticket | None:
        """The next in the line, if it wants the writer for itself."""
        with self._changed:
            ticket = next(iter(self._tickets), None)
            if ticket is None or ticket.operation is not None:
                return None
            self._remove_first(ticket)
            return ticket

    def close(self) -> None:
        """Let nobody join; who is in the line stays."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _append(self, ticket: Ticket) -> None:
        self._tickets[ticket] = monotonic()
        self._bytes += ticket.size
        if self._idle:
            self._changed.notify()

    def _remove_first(self, ticket: Ticket) -> None:
        _, since = self._tickets.popitem(last=False)
        self.waits += 1
        self.waited_s += monotonic() - since
        ticket.started = True
        self._bytes -= ticket.size

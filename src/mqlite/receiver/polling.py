"""Claims: as many messages as there are free slots, by long polls that can be broken off."""

from __future__ import annotations

import secrets
import threading
import time
from itertools import count
from typing import Final, NamedTuple

from mqlite.api import MQ
from mqlite.clock import Clock
from mqlite.errors import Closed, MqliteError
from mqlite.messages import Message
from mqlite.receiver.failures import lasting, pause_ms
from mqlite.receiver.options import Settings
from mqlite.receiver.reports import Reporter
from mqlite.receiver.waiting import wait_until

_GRACE_SECONDS: Final = 0.2


class Source(NamedTuple):
    """A queue's handles for the threads of a receiver: `calls` for everything that is quick,
    `polls` for long polls, closed to end them. Answers of a `remote` one can get lost."""

    calls: MQ
    polls: MQ
    clock: Clock
    remote: bool


class Poller:
    """Receives, for one thread."""

    def __init__(self, source: Source, settings: Settings, reporter: Reporter) -> None:
        self._source = source
        self._settings = settings
        self._reporter = reporter
        self._poke = threading.Event()
        self._stopped = False
        self._began = 0.0
        self._idle = threading.Event()

    def stop(self) -> None:
        """End the poll or the pause under way, and begin no other. Returns at once."""
        if self._stopped:
            return
        self._stopped = True
        self._poke.set()
        threading.Thread(target=self._break_off, daemon=True).start()

    def _break_off(self) -> None:
        """Not on the thread that stops: a client waits for the end of what it breaks off, such
        as an attempt to connect. And not before the broker can have seen the poll: the look
        at what it had claimed must not overtake it."""
        if self._source.remote:
            self._idle.wait(max(self._began + _GRACE_SECONDS - time.monotonic(), 0))
        self._source.polls.close()

    def close(self) -> None:
        """After the last receive."""
        self._source.polls.close()

    def receive(self, most: int) -> list[Message]:
        """Up to so many messages; none if there are none, or when stopped.

        Rides out what passes. Every try for the same slots has the same attempt id: it gets
        what an earlier one claimed, if the answer was lost. Raises what lasts.
        """
        attempt = secrets.token_hex(16) if self._source.remote else ""
        for failures in count(1):
            self._began = time.monotonic()
            if self._stopped:
                return self._left_behind(most, attempt) if failures > 1 else []
            self._idle.clear()
            try:
                return self._try(most, attempt)
            except MqliteError as error:
                if not self._stopped:
                    self._failed(failures, error)
            finally:
                self._idle.set()
        raise AssertionError

    def _try(self, most: int, attempt: str) -> list[Message]:
        return self._source.polls.receive(
            self._settings.queue,
            max_messages=most,
            wait=self._settings.wait_ms / 1000,
            attempt_id=attempt,
        )

    def _failed(self, failures: int, error: MqliteError) -> None:
        """Report it and pause; the first failure only repeats, unless the client has done so
        already. Raises an error that lasts."""
        if lasting(error):
            raise error
        if failures == 1 and not self._source.remote:
            return
        self._reporter.tell_of_queue("cannot receive from", error)
        clock = self._source.clock
        end = clock.elapsed() + pause_ms(failures, error)
        while not self._stopped and clock.elapsed() < end:
            wait_until(clock, end, self._poke)

    def _left_behind(self, most: int, attempt: str) -> list[Message]:
        """What the poll that was broken off had claimed, if it had."""
        if not self._source.remote:
            return []
        try:
            return self._source.calls.receive(
                self._settings.queue, max_messages=most, attempt_id=attempt
            )
        except Closed:
            return []
        except MqliteError as error:
            self._reporter.tell_of_queue("cannot hand back what may have been claimed from", error)
            return []

"""What a receiver tells: failures, one at a time, and counts."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from mqlite.messages import BaseMessage
from mqlite.receiver.outcomes import Outcome

OnError = Callable[[BaseException, BaseMessage | None], object]

_log: Final = logging.getLogger("mqlite.receiver")


class Counts(msgspec.Struct, frozen=True):
    """What became of the messages so far. `released`: handed back by a drain, uncounted;
    `lost`: the lease ended before they were settled; `unsettled`: settling them failed, and
    they come back when their lease ends."""

    completed: int = 0
    abandoned: int = 0
    snoozed: int = 0
    rejected: int = 0
    deferred: int = 0
    released: int = 0
    lost: int = 0
    unsettled: int = 0


class Reporter:
    """Passes failures on to `on_error`, never two at once, or to the log."""

    def __init__(self, queue: str, on_error: OnError | None) -> None:
        self._queue = queue
        self._on_error = on_error
        self._telling = threading.RLock()
        self._counting = threading.Lock()
        self._counts = dict.fromkeys(Counts.__struct_fields__, 0)

    def tell_of_message(self, what: str, error: BaseException, message: BaseMessage) -> None:
        """`what` happened to one message, such as "lease lost"."""
        trace = error if what == HANDLER_FAILED else None
        self._tell(f"{what}: message {message.seq_number} of", error, message, trace)

    def tell_of_queue(self, what: str, error: BaseException) -> None:
        """`what` ends in the word before the queue's name, such as "stopped receiving from"."""
        self._tell(what, error, None, None)

    def _tell(
        self,
        text: str,
        error: BaseException,
        message: BaseMessage | None,
        trace: BaseException | None,
    ) -> None:
        # It must not end the thread that tells it: not even a log that fails.
        with self._telling, suppress(Exception):
            if self._on_error is None:
                _log.warning("%s %r: %s", text, self._queue, error, exc_info=trace)
                return
            try:
                self._on_error(error, message)
            except BaseException:
                _log.exception("on_error of the receiver of %r failed", self._queue)

    def count(self, outcome: Outcome, number: int = 1) -> None:
        self.add(outcome.counted_as, number)

    def add(self, name: str, number: int = 1) -> None:
        with self._counting:
            self._counts[name] += number

    @property
    def counts(self) -> Counts:
        with self._counting:
            return Counts(**self._counts)


HANDLER_FAILED: Final = "handler failed"

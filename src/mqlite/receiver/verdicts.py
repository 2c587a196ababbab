"""What a message's handler has decided, also by failing."""

from __future__ import annotations

from mqlite.durations import to_ms
from mqlite.messages import BaseMessage
from mqlite.receiver.jobs import Job
from mqlite.receiver.options import Settings
from mqlite.receiver.outcomes import Abandon, InvalidPayload, Outcome
from mqlite.receiver.reports import HANDLER_FAILED, Reporter


class Verdicts:
    """Turns failures into outcomes, and reports them."""

    def __init__(self, settings: Settings, reporter: Reporter) -> None:
        self._retry_delay = settings.retry_delay
        self._reporter = reporter

    def on(self, job: Job, decided: Outcome | BaseException) -> Outcome:
        """The outcome. A handler that has lost its message may fail: it was told."""
        if isinstance(decided, InvalidPayload):
            self._reporter.tell_of_message("invalid payload", decided, job.message)
        if isinstance(decided, Outcome):
            return decided
        if not job.lost:
            self._reporter.tell_of_message(HANDLER_FAILED, decided, job.message)
        return Abandon(self._delay(job.message))

    def _delay(self, message: BaseMessage) -> float:
        delay = self._retry_delay
        try:
            return to_ms(delay(message) if callable(delay) else delay, "retry_delay") / 1000
        except Exception as error:
            self._reporter.tell_of_message("retry_delay failed", error, message)
            return 0

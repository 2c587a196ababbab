"""What is to become of a message: returned or raised by its handler."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Final

from mqlite import arguments
from mqlite.api import MQ
from mqlite.durations import Duration, to_ms
from mqlite.errors import InvalidArgument, Unsupported
from mqlite.model import Lease


class Outcome(Exception):
    """Base of the outcomes. They are exceptions so that a handler can also raise them, from
    however deep it is."""

    counted_as: ClassVar[str] = "completed"


class Complete(Outcome):
    """Done: remove the message. What any other return value means, too."""


class Abandon(Outcome):
    """Give the message back for another delivery, after `delay` or the queue's retry policy;
    counts as a failure."""

    counted_as = "abandoned"
    delay: Duration = 0  # here too for a subclass that does not call `__init__`

    def __init__(self, delay: Duration = 0) -> None:
        super().__init__(delay)
        to_ms(delay, "delay")
        self.delay = delay


class Snooze(Outcome):
    """Deliver the message again after `delay`. No failure; where the queue counts deliveries
    it is as good as `Abandon`."""

    counted_as = "snoozed"
    delay: Duration = 0

    def __init__(self, delay: Duration) -> None:
        super().__init__(delay)
        to_ms(delay, "delay")
        self.delay = delay


class Reject(Outcome):
    """Dead-letter the message; the reason defaults to AppRequested."""

    counted_as = "rejected"
    reason = ""
    description = ""

    def __init__(self, reason: str = "", description: str = "") -> None:
        super().__init__(reason, description)
        self.reason = arguments.text(reason, "reason")
        self.description = arguments.text(description, "description")


class InvalidPayload(Reject):
    """What becomes of a body that is not of the handler's type; not for handlers."""

    def __init__(self, problem: str) -> None:
        super().__init__("InvalidPayload", problem)

    def __str__(self) -> str:
        return self.description


class Defer(Outcome):
    """Set the message aside until `receive_deferred`."""

    counted_as = "deferred"


class Release(Outcome):
    """Give the message back as if it had not been delivered. What a receiver does with work
    that it cannot finish; not for handlers."""

    counted_as = "released"


COMPLETE: Final = Complete()
RELEASE: Final = Release()


def judge(answer: Any) -> Outcome:
    """The outcome that a handler's return value stands for: itself, or success. Raises
    InvalidArgument for one that shows that the work is still to be done."""
    if answer is None:
        return COMPLETE
    if isinstance(answer, Outcome):
        return answer
    if isinstance(answer, type) and issubclass(answer, Outcome):
        return answer()
    if inspect.isawaitable(answer) or inspect.isgenerator(answer) or inspect.isasyncgen(answer):
        raise _unfinished(answer)
    return COMPLETE


def _unfinished(answer: Any) -> InvalidArgument:
    if inspect.iscoroutine(answer):
        answer.close()
    return InvalidArgument(
        f"the answer of the handler is of type {type(answer).__name__}, and nobody awaits it or"
        " iterates over it; await in an `async def`, on a queue of open_async or connect_async"
    )


def settle(mq: MQ, queue: str, lease: Lease, outcome: Outcome) -> None:
    """Settle one message. Raises what the operation raises."""
    held = queue, *lease
    match outcome:
        case Abandon(delay=delay):
            mq.abandon(*held, delay=delay)
        case Snooze(delay=delay):
            _snooze(mq, held, delay)
        case Reject(reason=reason, description=description):
            mq.reject(*held, reason=reason, description=description)
        case Defer():
            mq.defer(*held)
        case Release():
            _release(mq, held)
        case _:
            mq.complete(*held)


def _snooze(mq: MQ, held: tuple[str, int, str], delay: Duration) -> None:
    try:
        mq.abandon(*held, delay=delay, snooze=True)
    except Unsupported:  # an older broker only counts deliveries, for which it is the same
        mq.abandon(*held, delay=delay)


def _release(mq: MQ, held: tuple[str, int, str]) -> None:
    try:
        mq.release(*held)
    except Unsupported:  # an older broker: at least nobody waits for the lease to end
        mq.abandon(*held)

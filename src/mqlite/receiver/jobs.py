"""A message under a lease, and who may still settle it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import Enum
from typing import Final

import msgspec

from mqlite.api import MQ, AsyncMQ
from mqlite.clock import Clock
from mqlite.durations import Duration
from mqlite.errors import LockLost
from mqlite.messages import AsyncMessage, BaseMessage, Message
from mqlite.model import RenewResult
from mqlite.receiver.outcomes import COMPLETE, Abandon, Defer, Outcome, Reject, Release, Snooze

_NOTHING: Final = BaseMessage()


class State(Enum):
    """Of a job. `HELD`: it can be settled; `SETTLING`: somebody is about to; `LOST`: its
    lease has ended, or was given back."""

    HELD = "held"
    SETTLING = "settling"
    SETTLED = "settled"
    LOST = "lost"


class Job:
    """One delivery. Deadlines are on the scale of `clock.elapsed()`, in milliseconds.

    Whoever wants to settle it has to get hold of it first, so that it is settled once, and
    never after its lease was lost.
    """

    __slots__ = (
        "_clock", "_lock", "_then", "deadline", "forfeited", "lease", "lease_ms", "message", "outcome",
        "queue", "renew_at", "retries", "retry_at", "state", "tell_lost",
    )  # fmt: skip

    def __init__(self, message: BaseMessage, clock: Clock) -> None:
        self.message = message
        self.queue = message.queue
        self.lease = message.lease
        self.deadline = int(message.lease_deadline * 1000)
        self.lease_ms = message.lease_ms
        self.renew_at = self.deadline
        self.state = State.HELD
        self.forfeited = False
        self.outcome: Outcome = COMPLETE
        self.retries = 0
        self.retry_at = 0
        self.tell_lost: Callable[[], object] | None = None
        self._clock = clock
        self._lock = threading.Lock()
        self._then: Callable[[], object] | None = None

    def now(self) -> int:
        return self._clock.elapsed()

    @property
    def lost(self) -> bool:
        """Whether its handler has lost it: the lease has ended, told or not, or it was handed
        back."""
        held = self.state is State.HELD
        gone = self.forfeited or self.state is State.LOST
        return gone or (held and self.now() >= self.deadline)

    def hold(self) -> bool:
        """Get hold of it to settle it; not if it is lost, settled or held already."""
        with self._lock:
            if self.state is not State.HELD or self.lost:
                return False
            self.state = State.SETTLING
            return True

    def forfeit(self, outcome: Outcome) -> bool:
        """Take it out of its handler's hands; whether it is held now, to be settled so."""
        if not self.hold():
            return False
        self.forfeited = True
        self.outcome = outcome
        return True

    @property
    def settled(self) -> bool:
        return self.state is State.SETTLED

    def become(self, state: State) -> None:
        """What the settling has led to."""
        with self._lock:
            self.state = state
            then, self._then = self._then, None
        if then is not None:
            then()

    def after_settling(self, then: Callable[[], object]) -> bool:
        """Have this called when whoever settles it just now has got an answer; not if nobody
        does."""
        with self._lock:
            if self.state is not State.SETTLING:
                return False
            self._then = then
            return True

    def lose(self) -> bool:
        """The lease is gone: nobody may settle it any more. False if that was known, or if
        somebody is settling it, who will find out."""
        with self._lock:
            if self.state is not State.HELD:
                return False
            self.state = State.LOST
        if self.tell_lost is not None:
            self.tell_lost()
        return True

    def let_go(self) -> None:
        """Nothing is left to do. Message and job refer to each other: without this the body
        would stay until the cycle collector comes by."""
        self.message = _NOTHING
        self.tell_lost = None

    @contextmanager
    def settling(self, outcome: Outcome) -> Generator[None]:
        """For a handler that settles its message itself. Raises LockLost; after another
        failure it can be tried again."""
        if not self.hold():
            raise LockLost(f"{self} {self._why()}")
        try:
            yield
        except LockLost:
            self.deadline = min(self.deadline, self.now())
            self.become(State.HELD)
            raise
        except BaseException:
            self.become(State.HELD)
            raise
        self.outcome = outcome
        self.become(State.SETTLED)

    def check(self) -> None:
        """Raises LockLost where the lease is lost."""
        if self.lost:
            raise LockLost(f"{self} {self._why()}")

    def renewed(self, asked: int, result: RenewResult) -> None:
        """The lease was renewed, by a request made at `asked`."""
        told = int(result.lease_deadline * 1000)
        self.deadline = max(self.deadline, told or asked + self.lease_ms)

    def _why(self) -> str:
        settled = self.state in (State.SETTLED, State.SETTLING)
        return "has been settled already" if settled else "is no longer locked for this handler"

    def __str__(self) -> str:
        return f"message {self.lease[0]} of {self.queue!r}"


class Delivery(Message):
    """The message a handler is given: a `Message` that knows whether its lease is lost.

    Settling it goes through its receiver, which then leaves it alone. Once the lease is lost
    every method raises LockLost.
    """

    job: Job | None = None

    @property
    def lost(self) -> bool:
        """Whether somebody else may have the message by now: stop working on it."""
        return self._job.lost

    def complete(self) -> None:
        with self._job.settling(COMPLETE):
            super().complete()

    def abandon(self, delay: Duration = 0, *, snooze: bool = False) -> None:
        with self._job.settling(Snooze(delay) if snooze else Abandon(delay)):
            super().abandon(delay, snooze=snooze)

    def release(self) -> None:
        with self._job.settling(Release()):
            super().release()

    def reject(self, reason: str = "", description: str = "") -> None:
        with self._job.settling(Reject(reason, description)):
            super().reject(reason, description)

    def defer(self) -> None:
        with self._job.settling(Defer()):
            super().defer()

    def renew(self) -> RenewResult:
        self._job.check()
        asked = self._job.now()
        result = super().renew()
        self._job.renewed(asked, result)
        return result

    @property
    def _job(self) -> Job:
        assert self.job is not None
        return self.job


class AsyncDelivery(AsyncMessage):
    """`Delivery` for an async handler, whose task is cancelled when the lease is lost."""

    job: Job | None = None

    @property
    def lost(self) -> bool:
        """Whether somebody else may have the message by now: stop working on it."""
        return self._job.lost

    async def complete(self) -> None:
        with self._job.settling(COMPLETE):
            await super().complete()

    async def abandon(self, delay: Duration = 0, *, snooze: bool = False) -> None:
        with self._job.settling(Snooze(delay) if snooze else Abandon(delay)):
            await super().abandon(delay, snooze=snooze)

    async def release(self) -> None:
        with self._job.settling(Release()):
            await super().release()

    async def reject(self, reason: str = "", description: str = "") -> None:
        with self._job.settling(Reject(reason, description)):
            await super().reject(reason, description)

    async def defer(self) -> None:
        with self._job.settling(Defer()):
            await super().defer()

    async def renew(self) -> RenewResult:
        self._job.check()
        asked = self._job.now()
        result = await super().renew()
        self._job.renewed(asked, result)
        return result

    @property
    def _job(self) -> Job:
        assert self.job is not None
        return self.job


def give(message: Message, mq: MQ, clock: Clock) -> Job:
    """A claimed message for a plain function."""
    *fields, _ = msgspec.structs.astuple(message)
    delivery = Delivery(*(*fields, mq))
    delivery.job = Job(delivery, clock)
    return delivery.job


def give_async(message: Message, mq: AsyncMQ, clock: Clock) -> Job:
    """A claimed message for a coroutine function."""
    *fields, _ = msgspec.structs.astuple(message)
    delivery = AsyncDelivery(*(*fields, mq))
    delivery.job = Job(delivery, clock)
    return delivery.job

"""Received messages, which settle themselves through the queue they came from."""

from __future__ import annotations

from mqlite.api import MQ, AsyncMQ
from mqlite.durations import Duration
from mqlite.model import Lease, MessageData, RenewResult


class BaseMessage(MessageData):
    """What sync and async messages share. The fields never change after receipt; renewals
    are reported in results, not written back.

    The lease surely lasts until `lease_deadline`, in seconds of the handle's clock
    (`mq.clock.elapsed() / 1000`, by default that of `time.monotonic()`); 0 where there is none."""

    queue: str = ""
    lease_deadline: float = 0.0

    @property
    def lease(self) -> Lease:
        return self.seq_number, self.lock_token

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.queue!r} seq_number={self.seq_number} "
            f"delivery_count={self.delivery_count} body={len(self.body)} bytes>"
        )


class Message(BaseMessage):
    """A received message that settles itself through the queue it came from."""

    mq: MQ | None = None

    def complete(self) -> None:
        """Done: remove it. Raises LockLost."""
        self._mq.complete(self.queue, *self.lease)

    def abandon(self, delay: Duration = 0, *, snooze: bool = False) -> None:
        """Give it back for another delivery, after `delay` or the queue's retry policy; at
        the delivery limit it is dead-lettered. A `snooze` counts no failure. Raises
        LockLost."""
        self._mq.abandon(self.queue, *self.lease, delay=delay, snooze=snooze)

    def release(self) -> None:
        """Give it back at once, as if it had not been delivered. Raises LockLost."""
        self._mq.release(self.queue, *self.lease)

    def reject(self, reason: str = "", description: str = "") -> None:
        """Dead-letter it. Raises LockLost."""
        self._mq.reject(self.queue, *self.lease, reason=reason, description=description)

    def defer(self) -> None:
        """Set it aside; it comes back only by `receive_deferred`. Raises LockLost."""
        self._mq.defer(self.queue, *self.lease)

    def renew(self) -> RenewResult:
        """Extend the lease by the queue's lock duration, never shortening it. Raises
        LockLost."""
        return self._mq.renew(self.queue, *self.lease)

    @property
    def _mq(self) -> MQ:
        if self.mq is None:
            raise TypeError("this message was not received from a queue")
        return self.mq


class AsyncMessage(BaseMessage):
    """A received message that settles itself through the queue it came from."""

    mq: AsyncMQ | None = None

    async def complete(self) -> None:
        """Done: remove it. Raises LockLost."""
        await self._mq.complete(self.queue, *self.lease)

    async def abandon(self, delay: Duration = 0, *, snooze: bool = False) -> None:
        """Give it back for another delivery, after `delay` or the queue's retry policy; at
        the delivery limit it is dead-lettered. A `snooze` counts no failure. Raises
        LockLost."""
        await self._mq.abandon(self.queue, *self.lease, delay=delay, snooze=snooze)

    async def release(self) -> None:
        """Give it back at once, as if it had not been delivered. Raises LockLost."""
        await self._mq.release(self.queue, *self.lease)

    async def reject(self, reason: str = "", description: str = "") -> None:
        """Dead-letter it. Raises LockLost."""
        await self._mq.reject(self.queue, *self.lease, reason=reason, description=description)

    async def defer(self) -> None:
        """Set it aside; it comes back only by `receive_deferred`. Raises LockLost."""
        await self._mq.defer(self.queue, *self.lease)

    async def renew(self) -> RenewResult:
        """Extend the lease by the queue's lock duration, never shortening it. Raises
        LockLost."""
        return await self._mq.renew(self.queue, *self.lease)

    @property
    def _mq(self) -> AsyncMQ:
        if self.mq is None:
            raise TypeError("this message was not received from a queue")
        return self.mq

"""Leases kept alive while received messages are printed and then completed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from mqlite.api import MQ
from mqlite.cli import streams
from mqlite.errors import LockLost, MqliteError, Unsupported
from mqlite.messages import Message
from mqlite.model import MAX_RENEW_BATCH, RenewResult

UNKNOWN_LEASE_PAUSE: Final = 1.0
SHORTEST_PAUSE: Final = 0.05
SPENT: Final = 0.001
JOIN_TIMEOUT: Final = 1.0


def pause_before_renewal(remaining: float | None) -> float:
    """Seconds until the next renewal, by what remains of the tightest lease: a third of it,
    at least 50 ms, but never past its half; nothing when it is as good as spent."""
    if remaining is None:
        return UNKNOWN_LEASE_PAUSE
    if remaining < SPENT:
        return 0.0
    return min(max(remaining / 3, SHORTEST_PAUSE), remaining / 2)


class Lease:
    """A lease as the renewer follows it, beside the message and never writing to it.

    `deadline` is on the renewer's clock, None where unknown; `length` is how long the lease
    was when it was first seen, None if it was spent already.
    """

    __slots__ = ("deadline", "length", "seq_number", "token")

    def __init__(self, message: Message, now: float) -> None:
        self.seq_number, self.token = message.lease
        left = _remaining(message)
        self.length = left if left is not None and left >= SPENT else None
        self.deadline = None if left is None else now + left

    def renewed(self, result: RenewResult, asked_at: float, now: float) -> None:
        """Take the reported deadline; where the broker reports none, the time before the
        call and the first length give one that is not too late."""
        left = _remaining(result)
        if left is not None:
            self.deadline = now + left
        else:
            self.deadline = None if self.length is None else asked_at + self.length

    def not_renewed(self, now: float) -> None:
        """A deadline that is still ahead holds; a passed one says nothing any more."""
        if self.deadline is not None and self.deadline <= now:
            self.deadline = None


class Renewer:
    """Renews the leases of `messages` in the background until the block ends.

    A renewal that hangs does not hold up the end: its thread is left behind.
    """

    def __init__(
        self,
        mq: MQ,
        queue: str,
        messages: Sequence[Message],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._mq = mq
        self._queue = queue
        self._clock = clock
        self._leases = [Lease(message, clock()) for message in messages]
        self._one_by_one = False
        self._warned = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mqlite-renewer", daemon=True)

    def __enter__(self) -> Renewer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(JOIN_TIMEOUT)

    def pause(self) -> float:
        """Seconds until the next renewal."""
        known = [lease.deadline for lease in self._leases if lease.deadline is not None]
        return pause_before_renewal(min(known) - self._clock() if known else None)

    def renew_all(self) -> None:
        """Renew every lease once; those that are lost are followed no longer."""
        kept: list[Lease] = []
        for start in range(0, len(self._leases), MAX_RENEW_BATCH):
            chunk = self._leases[start : start + MAX_RENEW_BATCH]
            if not self._one_by_one:
                kept.extend(self._renew_batch(chunk))
            if self._one_by_one:
                kept.extend(lease for lease in chunk if self._renew_one(lease))
        self._leases = kept

    def _run(self) -> None:
        while self._leases and not self._stop.wait(self.pause()):
            self.renew_all()

    def _renew_batch(self, leases: list[Lease]) -> list[Lease]:
        asked_at = self._clock()
        pairs = [(lease.seq_number, lease.token) for lease in leases]
        try:
            results = self._mq.renew_batch(self._queue, pairs)
        except Unsupported:
            self._one_by_one = True
            streams.warn("this broker has no RenewBatch; renewing leases one by one")
            return []
        except MqliteError as error:
            self._not_renewed(leases, error)
            return leases
        kept = [(lease, result) for lease, result in zip(leases, results, strict=True) if result.ok]
        for lease, result in kept:
            lease.renewed(result, asked_at, self._clock())
        return [lease for lease, _ in kept]

    def _renew_one(self, lease: Lease) -> bool:
        asked_at = self._clock()
        try:
            result = self._mq.renew(self._queue, lease.seq_number, lease.token)
        except LockLost:
            return False
        except MqliteError as error:
            self._not_renewed([lease], error)
        else:
            lease.renewed(result, asked_at, self._clock())
        return True

    def _not_renewed(self, leases: list[Lease], error: MqliteError) -> None:
        for lease in leases:
            lease.not_renewed(self._clock())
        if not self._warned and not self._stop.is_set():
            self._warned = True
            streams.warn(f"leases could not be renewed, trying again: {error}")


def _remaining(source: Message | RenewResult) -> float | None:
    """Seconds left of a lease. `lease_ms` needs no synchronised clocks; a broker that does
    not send it sends only the deadline on its own clock."""
    if source.lease_ms:
        return source.lease_ms / 1000
    if source.locked_until_ms:
        return source.locked_until_ms / 1000 - time.time()
    return None

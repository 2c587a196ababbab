"""What can be done with a queue inside a transaction on its database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TypeVar, Unpack

from mqlite import arguments
from mqlite.durations import Duration, When
from mqlite.embedded.calls import Calls
from mqlite.engine.steps import Operation
from mqlite.messages import BaseMessage
from mqlite.model import Body, Lease, MessageFields, OutMessage, SettleResult

T = TypeVar("T")


class Sending(ABC):
    """Sends that become true when the transaction commits, and never if it does not."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @abstractmethod
    def _run(self, operation: Operation[T]) -> T: ...

    def send(
        self,
        queue: str,
        body: Body = b"",
        *,
        at: When | None = None,
        ttl: Duration | None = None,
        **fields: Unpack[MessageFields],
    ) -> int:
        """Send one message; see `MQ.send`. The sequence number means nothing until the
        commit: a rollback may give it to another message."""
        message = arguments.out_message(body, fields)
        return self._run(self._calls.send(queue, [message], at, ttl))[0]

    def send_batch(
        self,
        queue: str,
        messages: Iterable[OutMessage | Body],
        *,
        at: When | None = None,
        ttl: Duration | None = None,
    ) -> list[int]:
        """Send messages; see `MQ.send_batch`."""
        return self._run(self._calls.send(queue, arguments.out_messages(messages), at, ttl))


class Settling(Sending):
    """Sends and settlements that become true when the transaction commits."""

    def cancel(self, queue: str, seq_number: int) -> None:
        """See `MQ.cancel`."""
        self._run(self._calls.cancel(queue, seq_number))

    def complete(self, queue: str, seq_number: int, lock_token: str) -> None:
        """See `MQ.complete`. The lease is checked here, not at the commit."""
        self._run(self._calls.complete(queue, seq_number, lock_token))

    def complete_batch(
        self, queue: str, leases: Iterable[Lease | BaseMessage]
    ) -> list[SettleResult]:
        """See `MQ.complete_batch`."""
        return self._run(self._calls.complete_batch(queue, leases))

    def abandon(
        self,
        queue: str,
        seq_number: int,
        lock_token: str,
        *,
        delay: Duration = 0,
        snooze: bool = False,
    ) -> None:
        """See `MQ.abandon`."""
        self._run(self._calls.abandon(queue, seq_number, lock_token, delay, snooze))

    def release(self, queue: str, seq_number: int, lock_token: str) -> None:
        """See `MQ.release`."""
        self._run(self._calls.release(queue, seq_number, lock_token))

    def reject(
        self,
        queue: str,
        seq_number: int,
        lock_token: str,
        *,
        reason: str = "",
        description: str = "",
    ) -> None:
        """See `MQ.reject`."""
        self._run(self._calls.reject(queue, seq_number, lock_token, reason, description))

    def defer(self, queue: str, seq_number: int, lock_token: str) -> None:
        """See `MQ.defer`."""
        self._run(self._calls.defer(queue, seq_number, lock_token))

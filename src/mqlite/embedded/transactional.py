"""What can be done with a queue inside a transaction on its database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TypeVar

from mqlite import arguments
from mqlite.api import BaseMessage, Body, Lease
from mqlite.durations import Duration, When
from mqlite.embedded.calls import Calls
from mqlite.engine.steps import Operation
from mqlite.model import OutMessage, SettleResult

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
        message_id: str = "",
        group_id: str = "",
        subject: str = "",
        correlation_id: str = "",
        reply_to: str = "",
        content_type: str = "",
        properties: dict[str, str] | None = None,
        priority: int = 0,
    ) -> int:
        """Send one message; see `MQ.send`. The sequence number means nothing until the
        commit: a rollback may give it to another message."""
        message = arguments.out_message(
            body,
            message_id=message_id,
            group_id=group_id,
            subject=subject,
            correlation_id=correlation_id,
            reply_to=reply_to,
            content_type=content_type,
            properties=properties,
            priority=priority,
        )
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

    def abandon(self, queue: str, seq_number: int, lock_token: str, *, delay: Duration = 0) -> None:
        """See `MQ.abandon`."""
        self._run(self._calls.abandon(queue, seq_number, lock_token, delay))

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

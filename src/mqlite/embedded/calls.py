"""Calls of the Python API as engine operations; sync, async and transactional callers
share them."""

from __future__ import annotations

from collections.abc import Iterable

from mqlite import arguments
from mqlite.api import BaseMessage, Lease
from mqlite.clock import Clock
from mqlite.durations import Duration, When, to_epoch_ms, to_ms
from mqlite.engine import browse, deadletters, queues, receive, send, settle, settle_batch
from mqlite.engine.receive import Claimed
from mqlite.engine.settle import Renewal
from mqlite.engine.settle_batch import Renewals
from mqlite.engine.steps import Operation, Plan
from mqlite.errors import InvalidArgument
from mqlite.model import MessageData, MoveResult, OutMessage, QueueSettings, SettleResult


class Calls:
    """Turns arguments into operations. Raises InvalidArgument before anything is run."""

    def __init__(self, clock: Clock, max_message_bytes: int) -> None:
        self._clock = clock
        self._max_message_bytes = max_message_bytes

    def create_queue(self, name: str, kind: str, settings: QueueSettings) -> Operation[None]:
        return queues.create_queue(name, kind, arguments.config_fields(settings))

    def send(
        self,
        queue: str,
        messages: list[OutMessage],
        at: When | None,
        ttl: Duration | None,
    ) -> Operation[list[int]]:
        return send.send(
            queue,
            messages,
            at=0 if at is None else to_epoch_ms(at, "at", self._clock.now()),
            ttl_ms=0 if ttl is None else _positive_ms(ttl, "ttl"),
            max_bytes=self._max_message_bytes,
        )

    def cancel(self, queue: str, seq_number: int) -> Operation[None]:
        return send.cancel(queue, seq_number)

    def receive_deferred(self, queue: str, seq_numbers: Iterable[int]) -> Operation[Claimed]:
        return receive.receive_deferred(queue, list(seq_numbers))

    def complete(self, queue: str, lease: Lease) -> Operation[None]:
        return settle.complete(queue, *lease)

    def complete_batch(
        self, queue: str, leases: Iterable[Lease | BaseMessage]
    ) -> Operation[list[SettleResult]]:
        return settle_batch.complete_batch(queue, arguments.leases(leases))

    def abandon(self, queue: str, lease: Lease, delay: Duration) -> Operation[None]:
        return settle.abandon(queue, *lease, to_ms(delay, "delay"))

    def reject(self, queue: str, lease: Lease, reason: str, description: str) -> Operation[None]:
        return settle.reject(queue, *lease, reason, description)

    def defer(self, queue: str, lease: Lease) -> Operation[None]:
        return settle.defer(queue, *lease)

    def renew(self, queue: str, lease: Lease) -> Operation[Renewal]:
        return settle.renew(queue, *lease)

    def renew_batch(self, queue: str, leases: Iterable[Lease | BaseMessage]) -> Operation[Renewals]:
        return settle_batch.renew_batch(queue, arguments.leases(leases))

    def peek(
        self, queue: str, from_seq: int, state: str | None, max_messages: int
    ) -> Operation[list[MessageData]]:
        limit = arguments.peek_size(max_messages)
        return browse.peek(queue, from_seq, arguments.state(state), limit)

    def redrive(
        self, queue: str, target: str, limit: int, older_than: Duration, rate: int
    ) -> Plan[MoveResult]:
        return deadletters.redrive(
            queue,
            target=target,
            limit=limit,
            older_than_ms=to_ms(older_than, "older_than"),
            rate=rate,
        )

    def purge(self, queue: str, limit: int, older_than: Duration) -> Plan[MoveResult]:
        return deadletters.purge(queue, limit=limit, older_than_ms=to_ms(older_than, "older_than"))


def _positive_ms(ttl: Duration, field: str) -> int:
    value = to_ms(ttl, field)
    if not value:
        raise InvalidArgument(f"{field} must be positive; leave it out for none")
    return value

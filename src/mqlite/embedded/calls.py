"""Calls of the Python API as engine operations; sync, async and transactional callers
share them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from mqlite import arguments
from mqlite.clock import Clock
from mqlite.durations import Duration, When, to_epoch_ms, to_ms
from mqlite.embedded.sending import Sender
from mqlite.engine import (
    browse,
    deadletters,
    filters,
    keys,
    queues,
    receive,
    send,
    settle,
    settle_batch,
    topics,
)
from mqlite.engine.receive import Claimed
from mqlite.engine.send import Sent
from mqlite.engine.settle import Renewal
from mqlite.engine.settle_batch import Renewals
from mqlite.engine.steps import Operation, Plan
from mqlite.keys import MAX_KEY_PAGE, CreatedKey, KeyPage, expiry_ms, permission_list
from mqlite.messages import BaseMessage
from mqlite.model import (
    Body,
    FilterTest,
    Lease,
    MessageData,
    MoveResult,
    OutMessage,
    QueueSettings,
    SettleResult,
)
from mqlite.stores.names import Names, NoNames


class Calls:
    """Turns arguments into operations. Raises InvalidArgument before anything is run."""

    def __init__(self, clock: Clock, max_message_bytes: int, names: Names | None = None) -> None:
        self.sender = Sender(clock, max_message_bytes)
        self._clock = clock
        self._max_message_bytes = max_message_bytes
        self._names = names or NoNames()

    def create_queue(self, name: str, kind: str, settings: QueueSettings) -> Operation[None]:
        fields = arguments.config_fields(settings)
        return queues.create_queue(name, arguments.text(kind, "kind"), fields)

    def delete_queue(self, name: str, generation: str) -> Operation[None]:
        return queues.delete_queue(name, arguments.text(generation, "generation"))

    def unsubscribe(self, topic: str, name: str, generation: str) -> Operation[None]:
        return topics.unsubscribe(topic, name, arguments.text(generation, "generation"))

    def send(
        self, queue: str, messages: list[OutMessage], at: When | None, ttl: Duration | None
    ) -> Operation[Sent]:
        """A send inside a transaction, in which nothing is looked up beforehand."""
        due, ttl_ms = self.times(at, ttl)
        routes = self.sender.routes(messages, due, self._names.known(queue))
        return self.sender.operation(queue, messages, due, ttl_ms, routes)

    def times(self, at: When | None, ttl: Duration | None) -> tuple[int, int]:
        """When a send becomes visible (epoch ms, 0: now) and its time to live (0: none)."""
        due = 0 if at is None else to_epoch_ms(at, "at", self._clock.now())
        return due, arguments.ttl_ms(ttl)

    def test_filter(
        self,
        expr: str,
        message: OutMessage | Body | None,
        enqueued_at: When | None,
        visible_at: When | None,
    ) -> Callable[[], FilterTest]:
        """What tries the filter; it may take a while."""
        arguments.text(expr, "expr")
        if message is not None:
            [message] = arguments.out_messages([message])
        now = self._clock.now()
        enqueued = now if enqueued_at is None else to_epoch_ms(enqueued_at, "enqueued_at", now)
        visible = 0 if visible_at is None else to_epoch_ms(visible_at, "visible_at", now)
        return self.filter_test(expr, message, enqueued, visible)

    def filter_test(
        self, expr: str, message: OutMessage | None, enqueued_at: int, visible_at: int
    ) -> Callable[[], FilterTest]:
        """`test_filter` with times in epoch ms, where 0 is now, and as soon as enqueued."""
        if message is not None:
            send.check_message(message, self._max_message_bytes)
        enqueued_at = enqueued_at or self._clock.now()
        return partial(filters.dry_run, expr, message, enqueued_at, visible_at or enqueued_at)

    def cancel(self, queue: str, seq_number: int) -> Operation[None]:
        return send.cancel(queue, arguments.seq_number(seq_number))

    def receive_deferred(self, queue: str, seq_numbers: Iterable[int]) -> Operation[Claimed]:
        return receive.receive_deferred(queue, arguments.seq_numbers(seq_numbers))

    def complete(self, queue: str, seq_number: int, lock_token: str) -> Operation[None]:
        return settle.complete(queue, *arguments.lease(seq_number, lock_token))

    def complete_batch(
        self, queue: str, leases: Iterable[Lease | BaseMessage]
    ) -> Operation[list[SettleResult]]:
        return settle_batch.complete_batch(queue, arguments.leases(leases))

    def abandon(
        self, queue: str, seq_number: int, lock_token: str, delay: Duration, snooze: bool
    ) -> Operation[None]:
        lease = arguments.lease(seq_number, lock_token)
        return settle.abandon(
            queue, *lease, to_ms(delay, "delay"), arguments.flag(snooze, "snooze")
        )

    def release(self, queue: str, seq_number: int, lock_token: str) -> Operation[None]:
        return settle.release(queue, *arguments.lease(seq_number, lock_token))

    def reject(
        self, queue: str, seq_number: int, lock_token: str, reason: str, description: str
    ) -> Operation[None]:
        return settle.reject(
            queue,
            *arguments.lease(seq_number, lock_token),
            arguments.text(reason, "reason"),
            arguments.text(description, "description"),
        )

    def defer(self, queue: str, seq_number: int, lock_token: str) -> Operation[None]:
        return settle.defer(queue, *arguments.lease(seq_number, lock_token))

    def renew(self, queue: str, seq_number: int, lock_token: str) -> Operation[Renewal]:
        return settle.renew(queue, *arguments.lease(seq_number, lock_token))

    def renew_batch(self, queue: str, leases: Iterable[Lease | BaseMessage]) -> Operation[Renewals]:
        return settle_batch.renew_batch(queue, arguments.leases(leases))

    def peek(
        self, queue: str, from_seq: int, state: str | None, max_messages: int
    ) -> Operation[list[MessageData]]:
        return browse.peek(
            queue,
            arguments.bound(from_seq, "from_seq"),
            arguments.state(state),
            arguments.peek_size(max_messages),
        )

    def redrive(
        self, queue: str, target: str, max_messages: int, older_than: Duration, rate: int
    ) -> Plan[MoveResult]:
        return deadletters.redrive(
            queue,
            target=arguments.text(target, "target"),
            limit=arguments.bound(max_messages, "max_messages"),
            older_than_ms=to_ms(older_than, "older_than"),
            rate=arguments.bound(rate, "rate_per_second"),
        )

    def purge(self, queue: str, max_messages: int, older_than: Duration) -> Plan[MoveResult]:
        return deadletters.purge(
            queue,
            limit=arguments.bound(max_messages, "max_messages"),
            older_than_ms=to_ms(older_than, "older_than"),
        )

    def create_key(
        self, id_: str, name: str, permissions: Iterable[str], expires_at: When | None
    ) -> Operation[CreatedKey]:
        expiry = expiry_ms(expires_at, self._clock.now())
        return keys.create(id_, name, permission_list(permissions), expiry)

    def list_keys(self, after_id: str, limit: int, sort: str) -> Operation[KeyPage]:
        return keys.list_page(
            arguments.text(after_id, "after_id"),
            arguments.integer(limit, "limit", 1, MAX_KEY_PAGE),
            arguments.text(sort, "sort"),
        )

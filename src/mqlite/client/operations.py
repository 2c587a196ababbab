"""Every operation of the contract as a `Call`, or as `Steps` where it takes several.

Sync and async clients share these; the table of what may be repeated is the `Safety` given to
each. Bad arguments raise InvalidArgument here, before anything is sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from uuid import uuid4

import msgspec

from mqlite import arguments, wire
from mqlite.client import results
from mqlite.client.call import Arrival, Call, Safety, Steps, call_to
from mqlite.client.results import Received
from mqlite.client.sending import send
from mqlite.clock import Clock
from mqlite.durations import Duration, When, to_epoch_ms, to_ms
from mqlite.errors import NotFound, QueueChanged, Unsupported
from mqlite.messages import BaseMessage
from mqlite.model import (
    Body,
    FilterTest,
    Lease,
    MessageData,
    MoveResult,
    OutMessage,
    QueueInfo,
    QueueSettings,
    QueueStats,
    RenewResult,
    SettleResult,
    StoreStatus,
    SubscriptionInfo,
)
from mqlite.observation.schema import Observation

_READ: Final = Safety.READ
_REPEATABLE: Final = Safety.REPEATABLE
_ONCE: Final = Safety.ONCE

_UNREAD: Final = msgspec.json.Decoder(msgspec.Raw)


class Operations:
    """Describes calls to one broker, and remembers what that broker lacks."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._lacks_renew_batch = False

    # Admin: creating, pausing and subscribing say what shall be so, and deletions are
    # fenced by a generation, so all of them may be repeated.

    def create_queue(self, name: str, kind: str, settings: QueueSettings) -> Call[None]:
        config = wire.ConfigFields(
            kind=arguments.text(kind, "kind"), **arguments.config_fields(settings)
        )
        request = wire.CreateQueueRequest(name=name, config=config)
        return call_to(
            "AdminService/CreateQueue", request, wire.EmptyResponse, results.nothing, _REPEATABLE
        )

    def delete_queue(self, name: str, generation: str | None) -> Steps[None]:
        if generation is None:
            generation = _generation((yield self.list_queues()), name)
        arguments.text(generation, "generation")
        request = wire.DeleteQueueRequest(name=name, generation=generation)
        yield call_to(
            "AdminService/DeleteQueue",
            request,
            wire.DeletedResponse,
            results.nothing,
            _REPEATABLE,
            done_if=_GONE,
        )

    def pause_queue(self, name: str) -> Call[None]:
        request = wire.PauseRequest(name=name)
        return call_to(
            "AdminService/PauseQueue", request, wire.EmptyResponse, results.nothing, _REPEATABLE
        )

    def resume_queue(self, name: str) -> Call[None]:
        request = wire.PauseRequest(name=name)
        return call_to(
            "AdminService/ResumeQueue", request, wire.EmptyResponse, results.nothing, _REPEATABLE
        )

    def list_queues(self) -> Call[list[QueueInfo]]:
        return call_to(
            "AdminService/ListQueues",
            wire.Request(),
            wire.ListQueuesResponse,
            results.queues,
            _READ,
        )

    def subscribe(self, topic: str, name: str, expr: str) -> Call[None]:
        arguments.text(expr, "expr")
        filter_ = wire.FilterFields(expr=expr) if expr else None
        request = wire.SubscribeRequest(topic=topic, name=name, filter=filter_)
        return call_to(
            "AdminService/Subscribe", request, wire.EmptyResponse, results.nothing, _REPEATABLE
        )

    def unsubscribe(self, topic: str, name: str, generation: str | None) -> Steps[None]:
        if generation is None:
            generation = _generation((yield self.list_queues()), name)
        arguments.text(generation, "generation")
        request = wire.UnsubscribeRequest(topic=topic, name=name, generation=generation)
        yield call_to(
            "AdminService/Unsubscribe",
            request,
            wire.DeletedResponse,
            results.nothing,
            _REPEATABLE,
            done_if=_GONE,
        )

    def list_subscriptions(self) -> Call[list[SubscriptionInfo]]:
        kind = wire.ListSubscriptionsResponse
        return call_to(
            "AdminService/ListSubscriptions", wire.Request(), kind, results.subscriptions, _READ
        )

    def test_filter(
        self,
        expr: str,
        message: OutMessage | Body | None,
        enqueued_at: When | None,
        visible_at: When | None,
    ) -> Call[FilterTest]:
        sample = None
        if message is not None:
            [sent] = arguments.out_messages([message])
            sample = wire.wire_message(sent)
            now = self.clock.now()
            if enqueued_at is not None:
                sample.enqueued_at_ms = to_epoch_ms(enqueued_at, "enqueued_at", now)
            if visible_at is not None:
                sample.visible_at_ms = to_epoch_ms(visible_at, "visible_at", now)
                sample.enqueued_at_ms = sample.enqueued_at_ms or now  # both by one clock
        request = wire.TestFilterRequest(expr=arguments.text(expr, "expr"), message=sample)
        return call_to("AdminService/TestFilter", request, FilterTest, results.itself, _READ)

    def redrive(
        self, queue: str, target: str, max_messages: int, older_than: Duration, rate: int
    ) -> Call[MoveResult]:
        request = wire.RedriveRequest(
            queue=queue,
            target=arguments.text(target, "target") or None,
            max=arguments.bound(max_messages, "max_messages") or None,
            older_than_ms=to_ms(older_than, "older_than") or None,
            rate_per_sec=arguments.bound(rate, "rate_per_second") or None,
        )
        return call_to(
            "AdminService/Redrive",
            request,
            wire.RedriveResponse,
            results.moved,
            _ONCE,
            work_ms=wire.MOVE_MS,
        )

    def purge(self, queue: str, max_messages: int, older_than: Duration) -> Call[MoveResult]:
        request = wire.PurgeRequest(
            queue=queue,
            max=arguments.bound(max_messages, "max_messages") or None,
            older_than_ms=to_ms(older_than, "older_than") or None,
        )
        return call_to(
            "AdminService/Purge",
            request,
            wire.PurgeResponse,
            results.purged,
            _ONCE,
            work_ms=wire.MOVE_MS,
        )

    def observe(self) -> Call[Observation]:
        path = "/mqlite.v1.AdminService/Observe"
        return Call(path, wire.Request(), _UNREAD, results.observation, _READ)

    def status(self) -> Call[StoreStatus]:
        return call_to(
            "AdminService/Status", wire.Request(), wire.StatusResponse, results.status, _READ
        )

    def broker_status(self) -> Call[wire.StatusResponse]:
        return call_to(
            "AdminService/Status", wire.Request(), wire.StatusResponse, results.itself, _READ
        )

    # Messages. A send might be stored twice; whoever wants to repeat one gives it a
    # `message_id` and the queue a dedup window.

    def send(
        self, queue: str, messages: list[OutMessage], at: When | None, ttl: Duration | None
    ) -> Call[list[int]]:
        return send(queue, messages, *self.times(at, ttl))

    def times(self, at: When | None, ttl: Duration | None) -> tuple[int, int]:
        """When a send becomes visible (epoch ms, 0: now) and its time to live (0: none)."""
        due = 0 if at is None else to_epoch_ms(at, "at", self.clock.now())
        return due, arguments.ttl_ms(ttl)

    def cancel(self, queue: str, seq_number: int) -> Call[None]:
        request = wire.CancelRequest(queue=queue, seq_number=arguments.seq_number(seq_number))
        return call_to("QueueService/Cancel", request, wire.SettleResponse, results.nothing, _ONCE)

    def receive(
        self, queue: str, max_messages: int, wait: Duration, mode: str, attempt_id: str
    ) -> Call[Received]:
        """The attempt id, the caller's or a new one, is what makes it repeatable."""
        wait_ms = arguments.wait_ms(wait)
        request = wire.ReceiveRequest(
            queue=queue,
            max_messages=arguments.batch_size(max_messages),
            wait_time_ms=wait_ms or None,
            receive_mode=1 if arguments.receive_mode(mode) == "receive_and_delete" else None,
            receive_attempt_id=arguments.text(attempt_id, "attempt_id") or uuid4().hex,
        )
        kind = wire.ReceiveResponse
        return call_to(
            "QueueService/Receive", request, kind, results.received, _REPEATABLE, wait_ms=wait_ms
        )

    def receive_deferred(self, queue: str, seq_numbers: Iterable[int]) -> Call[Received]:
        request = wire.ReceiveDeferredRequest(
            queue=queue, seq_numbers=arguments.seq_numbers(seq_numbers)
        )
        return call_to(
            "QueueService/ReceiveDeferred", request, wire.MessagesResponse, results.unparked, _ONCE
        )

    def peek(
        self, queue: str, from_seq: int, state: str | None, max_messages: int
    ) -> Call[list[MessageData]]:
        request = wire.PeekRequest(
            queue=queue,
            from_seq=arguments.bound(from_seq, "from_seq") or None,
            state=arguments.state(state) or None,
            max=arguments.peek_size(max_messages),
        )
        return call_to("QueueService/Peek", request, wire.MessagesResponse, results.messages, _READ)

    def stats(self, queue: str) -> Call[QueueStats]:
        return call_to(
            "QueueService/Stats", wire.StatsRequest(queue=queue), QueueStats, results.itself, _READ
        )

    # Settlement: the broker remembers what it has done for 30 minutes and answers a repeat
    # alike; a renewal never shortens a lease.

    def settle(
        self, method: str, queue: str, seq_number: int, lock_token: str, **effect: Any
    ) -> Call[None]:
        """Complete, Abandon, Release, Reject or Defer."""
        arguments.lease(seq_number, lock_token)
        request = wire.SettleRequest(
            queue=queue, seq_number=seq_number, lock_token=lock_token, **effect
        )

        def finish(answer: wire.SettleResponse, _: Arrival) -> None:
            results.held(SettleResult(seq_number, answer.ok), queue)

        return call_to(f"QueueService/{method}", request, wire.SettleResponse, finish, _REPEATABLE)

    def abandon(
        self, queue: str, seq_number: int, lock_token: str, delay: Duration, snooze: bool
    ) -> Call[None]:
        return self.settle(
            "Abandon",
            queue,
            seq_number,
            lock_token,
            delay_ms=to_ms(delay, "delay") or None,
            snooze=arguments.flag(snooze, "snooze") or None,
        )

    def reject(
        self, queue: str, seq_number: int, lock_token: str, reason: str, description: str
    ) -> Call[None]:
        return self.settle(
            "Reject",
            queue,
            seq_number,
            lock_token,
            dead_letter_reason=arguments.text(reason, "reason") or None,
            dead_letter_description=arguments.text(description, "description") or None,
        )

    def renew(self, queue: str, seq_number: int, lock_token: str) -> Steps[RenewResult]:
        # Only RenewBatch reports the new deadline.
        if not self._lacks_renew_batch:
            try:
                renewed: list[RenewResult] = yield self.renew_batch(
                    queue, [(seq_number, lock_token)]
                )
            except Unsupported:
                self._lacks_renew_batch = True
            else:
                [result] = renewed
                return results.held(result, queue)
        yield self.settle("Renew", queue, seq_number, lock_token)
        return RenewResult(seq_number, True)

    def complete_batch(
        self, queue: str, leases: Iterable[Lease | BaseMessage]
    ) -> Call[list[SettleResult]]:
        request = _batch(queue, leases)

        def finish(answer: wire.CompleteBatchResponse, _: Arrival) -> list[SettleResult]:
            return results.one_each(answer.results, request)

        kind = wire.CompleteBatchResponse
        return call_to("QueueService/CompleteBatch", request, kind, finish, _REPEATABLE)

    def renew_batch(
        self, queue: str, leases: Iterable[Lease | BaseMessage]
    ) -> Call[list[RenewResult]]:
        request = _batch(queue, leases)

        def finish(answer: wire.RenewBatchResponse, arrival: Arrival) -> list[RenewResult]:
            return results.one_each(results.renewed(answer, arrival), request)

        kind = wire.RenewBatchResponse
        return call_to("QueueService/RenewBatch", request, kind, finish, _REPEATABLE)


_GONE: Final = (NotFound, QueueChanged)


def _generation(infos: list[QueueInfo], name: str) -> str:
    for info in infos:
        if info.name == name:
            return info.generation
    raise NotFound(f"queue {name!r} does not exist")


def _batch(queue: str, leases: Iterable[Lease | BaseMessage]) -> wire.BatchRequest:
    items = [
        wire.LeaseItem(seq_number=seq_number, lock_token=token)
        for seq_number, token in arguments.leases(leases)
    ]
    return wire.BatchRequest(queue=queue, messages=items)

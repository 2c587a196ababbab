"""`Client`: a broker as an `MQ`."""

from __future__ import annotations

import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Final, TypeVar, Unpack

import msgspec

from mqlite import arguments, wire
from mqlite.api import MQ, Body, Lease, Message
from mqlite.client.failures import not_a_broker
from mqlite.client.transport import Transport
from mqlite.durations import Duration, When, to_epoch_ms, to_ms
from mqlite.errors import (
    LockLost,
    MessageTooLarge,
    MqliteError,
    NotFound,
    Unsupported,
)
from mqlite.model import (
    FilterTest,
    Kind,
    MessageData,
    MoveResult,
    OutMessage,
    QueueInfo,
    QueueSettings,
    QueueStats,
    ReceiveMode,
    RenewResult,
    SettleResult,
    State,
    StoreStatus,
    SubscriptionInfo,
)

T = TypeVar("T")
Settled = TypeVar("Settled", SettleResult, RenewResult)

_QUEUE: Final = "/mqlite.v1.QueueService/"
_ADMIN: Final = "/mqlite.v1.AdminService/"


class Client(MQ):
    """The operations of `MQ` on a running broker. Safe to share between threads.

    `endpoint` is an http(s) URL, or `mqlite://[token@]host[:port]`; `token` overrides the
    one written there. Beyond what `MQ` says, calls raise Unavailable when the broker cannot
    be reached, and OutcomeUnknown when the answer to a write was lost.
    """

    def __init__(self, endpoint: str, *, token: str = "") -> None:
        self._transport = Transport(endpoint, token)
        self._lacks_renew_batch = False

    def __repr__(self) -> str:
        return f"<Client {self._transport.base_url!r}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    def create_queue(
        self, name: str, *, kind: Kind = "queue", **settings: Unpack[QueueSettings]
    ) -> None:
        config = wire.ConfigFields(
            kind=arguments.text(kind, "kind"), **arguments.config_fields(settings)
        )
        self._admin(
            "CreateQueue", wire.CreateQueueRequest(name=name, config=config), wire.EmptyResponse
        )

    def delete_queue(self, name: str, *, generation: str | None = None) -> None:
        if generation is None:
            generation = self._generation(name)
        arguments.text(generation, "generation")
        request = wire.DeleteQueueRequest(name=name, generation=generation)
        self._admin("DeleteQueue", request, wire.DeletedResponse)

    def pause_queue(self, name: str) -> None:
        self._admin("PauseQueue", wire.PauseRequest(name=name), wire.EmptyResponse)

    def resume_queue(self, name: str) -> None:
        self._admin("ResumeQueue", wire.PauseRequest(name=name), wire.EmptyResponse)

    def list_queues(self) -> list[QueueInfo]:
        answer = self._admin("ListQueues", wire.Request(), wire.ListQueuesResponse, writes=False)
        return [entry.info() for entry in answer.queues]

    def subscribe(self, topic: str, name: str, *, expr: str = "") -> None:
        arguments.text(expr, "expr")
        filter_ = wire.FilterFields(expr=expr) if expr else None
        request = wire.SubscribeRequest(topic=topic, name=name, filter=filter_)
        self._admin("Subscribe", request, wire.EmptyResponse)

    def unsubscribe(self, topic: str, name: str, *, generation: str | None = None) -> None:
        if generation is None:
            generation = self._generation(name)
        arguments.text(generation, "generation")
        request = wire.UnsubscribeRequest(topic=topic, name=name, generation=generation)
        self._admin("Unsubscribe", request, wire.DeletedResponse)

    def list_subscriptions(self) -> list[SubscriptionInfo]:
        answer = self._admin(
            "ListSubscriptions", wire.Request(), wire.ListSubscriptionsResponse, writes=False
        )
        return [
            SubscriptionInfo(topic=s.topic, name=s.name, expr=s.expr) for s in answer.subscriptions
        ]

    def test_filter(
        self,
        expr: str,
        message: OutMessage | Body | None = None,
        *,
        enqueued_at: When | None = None,
        visible_at: When | None = None,
    ) -> FilterTest:
        sample = None
        if message is not None:
            [sent] = arguments.out_messages([message])
            sample = wire.wire_message(sent)
            if enqueued_at is not None:
                sample.enqueued_at_ms = to_epoch_ms(enqueued_at, "enqueued_at", _now())
            if visible_at is not None:
                sample.visible_at_ms = to_epoch_ms(visible_at, "visible_at", _now())
        request = wire.TestFilterRequest(expr=arguments.text(expr, "expr"), message=sample)
        return self._admin("TestFilter", request, FilterTest, writes=False)

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
        return self._send(queue, [message], at, ttl)[0]

    def send_batch(
        self,
        queue: str,
        messages: Iterable[OutMessage | Body],
        *,
        at: When | None = None,
        ttl: Duration | None = None,
    ) -> list[int]:
        return self._send(queue, arguments.out_messages(messages), at, ttl)

    def cancel(self, queue: str, seq_number: int) -> None:
        request = wire.CancelRequest(queue=queue, seq_number=arguments.seq_number(seq_number))
        self._queue("Cancel", request, wire.SettleResponse)

    def receive(
        self,
        queue: str,
        *,
        max_messages: int = 1,
        wait: Duration = 0,
        mode: ReceiveMode = "peek_lock",
        attempt_id: str = "",
    ) -> list[Message]:
        request = wire.ReceiveRequest(
            queue=queue,
            max_messages=arguments.batch_size(max_messages),
            wait_time_ms=arguments.wait_ms(wait) or None,
            receive_mode=1 if arguments.receive_mode(mode) == "receive_and_delete" else None,
            receive_attempt_id=arguments.text(attempt_id, "attempt_id") or None,
        )
        answer = self._call(_QUEUE + "Receive", request, wire.MessagesResponse, polls=True)
        return self._handles(queue, answer)

    def receive_deferred(self, queue: str, seq_numbers: Iterable[int]) -> list[Message]:
        request = wire.ReceiveDeferredRequest(
            queue=queue, seq_numbers=arguments.seq_numbers(seq_numbers)
        )
        return self._handles(queue, self._queue("ReceiveDeferred", request, wire.MessagesResponse))

    def complete(self, queue: str, seq_number: int, lock_token: str) -> None:
        self._settle("Complete", queue, seq_number, lock_token)

    def complete_batch(self, queue: str, leases: Iterable[Lease | Message]) -> list[SettleResult]:
        request = _batch(queue, leases)
        return self._queue("CompleteBatch", request, wire.CompleteBatchResponse).results

    def abandon(self, queue: str, seq_number: int, lock_token: str, *, delay: Duration = 0) -> None:
        delay_ms = to_ms(delay, "delay") or None
        self._settle("Abandon", queue, seq_number, lock_token, delay_ms=delay_ms)

    def reject(
        self,
        queue: str,
        seq_number: int,
        lock_token: str,
        *,
        reason: str = "",
        description: str = "",
    ) -> None:
        self._settle(
            "Reject",
            queue,
            seq_number,
            lock_token,
            dead_letter_reason=arguments.text(reason, "reason") or None,
            dead_letter_description=arguments.text(description, "description") or None,
        )

    def defer(self, queue: str, seq_number: int, lock_token: str) -> None:
        self._settle("Defer", queue, seq_number, lock_token)

    def renew(self, queue: str, seq_number: int, lock_token: str) -> RenewResult:
        # Only RenewBatch reports the new deadline.
        if not self._lacks_renew_batch:
            try:
                [result] = self.renew_batch(queue, [(seq_number, lock_token)])
            except Unsupported:
                self._lacks_renew_batch = True
            else:
                return _held(result, queue)
        self._settle("Renew", queue, seq_number, lock_token)
        return RenewResult(seq_number, True)

    def renew_batch(self, queue: str, leases: Iterable[Lease | Message]) -> list[RenewResult]:
        request = _batch(queue, leases)
        return self._queue("RenewBatch", request, wire.RenewBatchResponse).results

    def peek(
        self,
        queue: str,
        *,
        from_seq: int = 0,
        state: State | None = None,
        max_messages: int = 32,
    ) -> list[MessageData]:
        request = wire.PeekRequest(
            queue=queue,
            from_seq=arguments.bound(from_seq, "from_seq") or None,
            state=arguments.state(state) or None,
            max=arguments.peek_size(max_messages),
        )
        return self._queue("Peek", request, wire.MessagesResponse, writes=False).messages

    def stats(self, queue: str) -> QueueStats:
        return self._queue("Stats", wire.StatsRequest(queue=queue), QueueStats, writes=False)

    def redrive(
        self,
        queue: str,
        *,
        target: str = "",
        max_messages: int = 0,
        older_than: Duration = 0,
        rate_per_second: int = 0,
    ) -> MoveResult:
        request = wire.RedriveRequest(
            queue=queue,
            target=arguments.text(target, "target") or None,
            max=arguments.bound(max_messages, "max_messages") or None,
            older_than_ms=to_ms(older_than, "older_than") or None,
            rate_per_sec=arguments.bound(rate_per_second, "rate_per_second") or None,
        )
        answer = self._admin("Redrive", request, wire.RedriveResponse)
        return MoveResult(answer.moved, answer.complete)

    def purge(self, queue: str, *, max_messages: int = 0, older_than: Duration = 0) -> MoveResult:
        request = wire.PurgeRequest(
            queue=queue,
            max=arguments.bound(max_messages, "max_messages") or None,
            older_than_ms=to_ms(older_than, "older_than") or None,
        )
        answer = self._admin("Purge", request, wire.PurgeResponse)
        return MoveResult(answer.purged, answer.complete)

    def status(self) -> StoreStatus:
        return self.broker_status().status()

    def broker_status(self) -> wire.StatusResponse:
        """`status`, and what only a broker has: version, uptime, whether it asks for tokens."""
        return self._admin("Status", wire.Request(), wire.StatusResponse, writes=False)

    def _queue(self, method: str, request: wire.Request, kind: type[T], writes: bool = True) -> T:
        return self._call(_QUEUE + method, request, kind, writes)

    def _admin(self, method: str, request: wire.Request, kind: type[T], writes: bool = True) -> T:
        return self._call(_ADMIN + method, request, kind, writes)

    def _call(
        self,
        path: str,
        request: wire.Request,
        kind: type[T],
        writes: bool = True,
        polls: bool = False,
    ) -> T:
        try:
            body = msgspec.json.encode(request)
        except UnicodeEncodeError:
            for field, value in msgspec.structs.asdict(request).items():
                if isinstance(value, str):
                    arguments.text(value, field)
            raise
        if len(body) > wire.MAX_REQUEST_BYTES:
            raise MessageTooLarge(f"the request is over {wire.MAX_REQUEST_BYTES} bytes")
        answer = self._transport.post(path, body, writes=writes, polls=polls)
        try:
            return msgspec.json.decode(answer, type=kind)
        except msgspec.DecodeError:
            raise not_a_broker(200) from None

    def _send(
        self, queue: str, messages: list[OutMessage], at: When | None, ttl: Duration | None
    ) -> list[int]:
        request = wire.SendRequest(
            queue=queue,
            messages=[wire.wire_message(message) for message in messages],
            scheduled_enqueue_time_ms=None if at is None else to_epoch_ms(at, "at", _now()),
            ttl_ms=arguments.ttl_ms(ttl) or None,
        )
        method = "Send" if at is None else "Schedule"
        seqs = self._queue(method, request, wire.SendResponse).seq_numbers or []
        if len(seqs) != len(messages):
            raise MqliteError(
                f"the broker answered {len(seqs)} numbers for {len(messages)} messages"
            )
        return seqs

    def _settle(
        self, method: str, queue: str, seq_number: int, lock_token: str, **effect: Any
    ) -> None:
        arguments.lease(seq_number, lock_token)
        request = wire.SettleRequest(
            queue=queue, seq_number=seq_number, lock_token=lock_token, **effect
        )
        _held(SettleResult(seq_number, self._queue(method, request, wire.SettleResponse).ok), queue)

    def _generation(self, name: str) -> str:
        for info in self.list_queues():
            if info.name == name:
                return info.generation
        raise NotFound(f"queue {name!r} does not exist")

    def _handles(self, queue: str, answer: wire.MessagesResponse) -> list[Message]:
        asdict = msgspec.structs.asdict
        return [Message(**asdict(message), queue=queue, mq=self) for message in answer.messages]


def _held(result: Settled, queue: str) -> Settled:
    if not result.ok:
        raise LockLost(f"message {result.seq_number} of {queue!r} is not locked under this token")
    return result


def _batch(queue: str, leases: Iterable[Lease | Message]) -> wire.BatchRequest:
    items = [
        wire.LeaseItem(seq_number=seq_number, lock_token=token)
        for seq_number, token in arguments.leases(leases)
    ]
    return wire.BatchRequest(queue=queue, messages=items)


def _now() -> int:
    return time.time_ns() // 1_000_000

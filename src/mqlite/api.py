"""The operations every queue handle has, sync (`MQ`) and async (`AsyncMQ`).

In-process queues and HTTP clients satisfy the same protocols and raise the same errors,
so a program moves from one to the other by changing how it opens the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Unpack, overload, runtime_checkable

from mqlite.durations import Duration, When
from mqlite.keys import AsyncKeyOperations, KeyOperations
from mqlite.model import (
    Body,
    FilterTest,
    Kind,
    Lease,
    MessageData,
    MessageFields,
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
from mqlite.observation.schema import Observation

if TYPE_CHECKING:
    from mqlite.clock import Clock
    from mqlite.messages import AsyncMessage, Message
    from mqlite.receiver.options import Declare, ReceiverOptions, RunOptions
    from mqlite.receiver.receivers import AsyncReceiver, Receiver
    from mqlite.receiver.workers import Workers

Handler = Callable[..., Any]
"""Called with a message; returns or raises what is to become of it."""
H = TypeVar("H", bound=Handler)
T = TypeVar("T")


@runtime_checkable
class MQ(KeyOperations, Protocol):
    """A queue handle for sync callers. Safe to share between threads.

    Every call raises InvalidArgument for a bad argument, Unavailable where the store
    cannot take it now, Closed after `close()`; what else it raises stands with it.
    """

    def create_queue(
        self, name: str, *, kind: Kind = "queue", **settings: Unpack[QueueSettings]
    ) -> None:
        """Create a queue, or update the settings of one of the same kind.

        Settings of the mqlite contract that are left out take their default, also in an
        update; the others keep their value. Raises NameConflict."""

    def delete_queue(self, name: str, *, generation: str | None = None) -> None:
        """Delete an empty plain queue. Without `generation` the present one is looked up
        once. Raises NotFound, QueueNotEmpty, QueueChanged."""

    def pause_queue(self, name: str) -> None:
        """Stop claims; everything else goes on. Receivers wait. Raises NotFound."""

    def resume_queue(self, name: str) -> None:
        """Allow claims again. Raises NotFound."""

    def list_queues(self) -> list[QueueInfo]:
        """Queues and backing queues, ascending by name."""

    def subscribe(self, topic: str, name: str, *, expr: str = "") -> None:
        """Create a subscription and its backing queue, or replace its filter, one boolean
        expression over the message; blank, it lets everything through. Raises
        InvalidArgument, saying where the expression is wrong; NameConflict."""

    def unsubscribe(self, topic: str, name: str, *, generation: str | None = None) -> None:
        """Remove a subscription and its empty backing queue. Raises NotFound,
        QueueNotEmpty, QueueChanged."""

    def list_subscriptions(self) -> list[SubscriptionInfo]:
        """Subscriptions, ascending by topic, then name."""

    def test_filter(
        self,
        expr: str,
        message: OutMessage | Body | None = None,
        *,
        enqueued_at: When | None = None,
        visible_at: When | None = None,
    ) -> FilterTest:
        """Whether a filter can be used and, given a message, whether it would let it through.

        The message counts as sent now, or at `enqueued_at`, and as visible at once, or at
        `visible_at`. A filter that is wrong or fails is no exception: the answer tells.
        Raises MessageTooLarge."""

    def send(
        self,
        queue: str,
        body: Body = b"",
        *,
        at: When | None = None,
        ttl: Duration | None = None,
        **fields: Unpack[MessageFields],
    ) -> int:
        """Send one message to a queue or topic; durable when it returns. `fields` are those
        of `OutMessage`.

        Answers its sequence number (of the last accepting subscription for a topic, 0
        when none accepted). `at` schedules it, `ttl` counts from when it is visible.
        Raises NotFound, GroupRequired, MessageTooLarge, DedupConflict."""

    def send_batch(
        self,
        queue: str,
        messages: Iterable[OutMessage | Body],
        *,
        at: When | None = None,
        ttl: Duration | None = None,
    ) -> list[int]:
        """Send messages in one transaction; answers one sequence number each.

        A dedup conflict in a batch of two or more is 0 in its slot while the others are
        sent; any other failure sends nothing. Raises as `send`."""

    def cancel(self, queue: str, seq_number: int) -> None:
        """Delete a scheduled message that was never delivered. Raises NotFound."""

    def receive(
        self,
        queue: str,
        *,
        max_messages: int = 1,
        wait: Duration = 0,
        mode: ReceiveMode = "peek_lock",
        attempt_id: str = "",
    ) -> list[Message]:
        """Claim up to 256 messages, waiting up to 20 s for the first.

        At-least-once under a lease (`peek_lock`) or at-most-once
        (`receive_and_delete`). A retry under the same `attempt_id` answers the same
        batch instead of claiming another. Raises NotFound."""

    def receive_deferred(self, queue: str, seq_numbers: Iterable[int]) -> list[Message]:
        """Lock deferred messages, up to 256 numbers, in the order given; numbers that are
        not deferred are skipped. Stops early at 32 MiB of bodies: ask again for the numbers
        that are not in the answer. Raises NotFound."""

    def complete(self, queue: str, seq_number: int, lock_token: str) -> None:
        """Done: remove the message. Safe to repeat for 30 minutes. Raises LockLost."""

    def complete_batch(self, queue: str, leases: Iterable[Lease | Message]) -> list[SettleResult]:
        """Complete messages in one transaction; positional results."""

    def abandon(
        self,
        queue: str,
        seq_number: int,
        lock_token: str,
        *,
        delay: Duration = 0,
        snooze: bool = False,
    ) -> None:
        """Give the message back for another delivery, after `delay` or the queue's retry
        policy; at the delivery limit it is dead-lettered. A `snooze` counts no failure, so
        that where a queue counts failures the message can be put off for ever. Raises
        LockLost."""

    def release(self, queue: str, seq_number: int, lock_token: str) -> None:
        """Give the message back at once, as if it had not been delivered: the delivery is not
        counted, the place in line kept. Raises LockLost."""

    def reject(
        self,
        queue: str,
        seq_number: int,
        lock_token: str,
        *,
        reason: str = "",
        description: str = "",
    ) -> None:
        """Dead-letter the message; the reason defaults to AppRequested. Raises LockLost."""

    def defer(self, queue: str, seq_number: int, lock_token: str) -> None:
        """Set the message aside until `receive_deferred`. Raises LockLost."""

    def renew(self, queue: str, seq_number: int, lock_token: str) -> RenewResult:
        """Extend the lease by the queue's lock duration, never shortening it. Raises
        NotFound, LockLost."""

    def renew_batch(self, queue: str, leases: Iterable[Lease | Message]) -> list[RenewResult]:
        """Extend up to 512 leases in one statement; positional results. Raises NotFound."""

    def peek(
        self,
        queue: str,
        *,
        from_seq: int = 0,
        state: State | None = None,
        max_messages: int = 32,
    ) -> list[MessageData]:
        """Up to 1000 messages in ascending sequence, without locking. An unknown queue
        has none."""

    def stats(self, queue: str) -> QueueStats:
        """Counts by state. Raises NotFound."""

    def redrive(
        self,
        queue: str,
        *,
        target: str = "",
        max_messages: int = 0,
        older_than: Duration = 0,
        rate_per_second: int = 0,
    ) -> MoveResult:
        """Make dead letters active again, here or in the `target` queue, oldest first;
        0 means no bound. Raises NotFound."""

    def purge(self, queue: str, *, max_messages: int = 0, older_than: Duration = 0) -> MoveResult:
        """Delete dead letters, oldest first; 0 means no bound. Raises NotFound."""

    @property
    def clock(self) -> Clock:
        """The clock by which leases end (`lease_deadline`)."""

    def receiver(self, queue: str, **options: Unpack[ReceiverOptions]) -> Receiver:
        """A consumer that claims, renews and settles by itself. Options:

        - `concurrency`: how many handlers may run at once, 1 by default; `prefetch`: how
          many messages are claimed at once, at most and by default that many.
        - `type`: what the JSON body is decoded to before the handler gets it; a body that
          does not fit is dead-lettered.
        - `auto_renew`: renew leases while handlers run, by default.
        - `retry_delay`: before the next delivery after a handler has failed, a duration or
          a function of the message; by default the queue's retry policy decides.
        - `drain_timeout`: how long handlers may take to finish when it stops, 30 s.
        - `wait`: of one long poll, 20 s.
        - `on_error`: called with each failure, and the message or None, one at a time;
          without it they are logged.

        Raises InvalidArgument."""

    @property
    def workers(self) -> Workers:
        """The handlers declared with `worker`."""

    @overload
    def worker(self, queue: str, *, type: type[T], **options: Unpack[RunOptions]) -> Declare[T]: ...

    @overload
    def worker(self, queue: str, **options: Unpack[ReceiverOptions]) -> Callable[[H], H]: ...

    def worker(self, queue: str, **options: Unpack[ReceiverOptions]) -> Any:
        """Declare the decorated function the handler of a queue; the options are those of
        `receiver`. `run_workers` runs it. Raises InvalidArgument."""

    def run_workers(self, *, handle_signals: bool = True) -> bool:
        """Run everything declared with `worker` until SIGINT, SIGTERM or a failure that
        lasts; see `Receiver.run`."""

    def observe(self) -> Observation:
        """What the queue holds and what was done in it since it was opened. Where the
        database cannot be read `queues` is None, and the counters are there all the same."""

    def status(self) -> StoreStatus:
        """A snapshot of the store, without secrets."""

    def close(self) -> None:
        """Refuse new work, wake long polls, finish what was admitted."""


@runtime_checkable
class AsyncMQ(AsyncKeyOperations, Protocol):
    """A queue handle for async callers; the operations of `MQ`, awaited."""

    async def create_queue(
        self, name: str, *, kind: Kind = "queue", **settings: Unpack[QueueSettings]
    ) -> None: ...

    async def delete_queue(self, name: str, *, generation: str | None = None) -> None: ...

    async def pause_queue(self, name: str) -> None: ...

    async def resume_queue(self, name: str) -> None: ...

    async def list_queues(self) -> list[QueueInfo]: ...

    async def subscribe(self, topic: str, name: str, *, expr: str = "") -> None: ...

    async def unsubscribe(
        self, topic: str, name: str, *, generation: str | None = None
    ) -> None: ...

    async def list_subscriptions(self) -> list[SubscriptionInfo]: ...

    async def test_filter(
        self,
        expr: str,
        message: OutMessage | Body | None = None,
        *,
        enqueued_at: When | None = None,
        visible_at: When | None = None,
    ) -> FilterTest: ...

    async def send(
        self,
        queue: str,
        body: Body = b"",
        *,
        at: When | None = None,
        ttl: Duration | None = None,
        **fields: Unpack[MessageFields],
    ) -> int: ...

    async def send_batch(
        self,
        queue: str,
        messages: Iterable[OutMessage | Body],
        *,
        at: When | None = None,
        ttl: Duration | None = None,
    ) -> list[int]: ...

    async def cancel(self, queue: str, seq_number: int) -> None: ...

    async def receive(
        self,
        queue: str,
        *,
        max_messages: int = 1,
        wait: Duration = 0,
        mode: ReceiveMode = "peek_lock",
        attempt_id: str = "",
    ) -> list[AsyncMessage]: ...

    async def receive_deferred(
        self, queue: str, seq_numbers: Iterable[int]
    ) -> list[AsyncMessage]: ...

    async def complete(self, queue: str, seq_number: int, lock_token: str) -> None: ...

    async def complete_batch(
        self, queue: str, leases: Iterable[Lease | AsyncMessage]
    ) -> list[SettleResult]: ...

    async def abandon(
        self,
        queue: str,
        seq_number: int,
        lock_token: str,
        *,
        delay: Duration = 0,
        snooze: bool = False,
    ) -> None: ...

    async def release(self, queue: str, seq_number: int, lock_token: str) -> None: ...

    async def reject(
        self,
        queue: str,
        seq_number: int,
        lock_token: str,
        *,
        reason: str = "",
        description: str = "",
    ) -> None: ...

    async def defer(self, queue: str, seq_number: int, lock_token: str) -> None: ...

    async def renew(self, queue: str, seq_number: int, lock_token: str) -> RenewResult: ...

    async def renew_batch(
        self, queue: str, leases: Iterable[Lease | AsyncMessage]
    ) -> list[RenewResult]: ...

    async def peek(
        self,
        queue: str,
        *,
        from_seq: int = 0,
        state: State | None = None,
        max_messages: int = 32,
    ) -> list[MessageData]: ...

    async def stats(self, queue: str) -> QueueStats: ...

    async def redrive(
        self,
        queue: str,
        *,
        target: str = "",
        max_messages: int = 0,
        older_than: Duration = 0,
        rate_per_second: int = 0,
    ) -> MoveResult: ...

    async def purge(
        self, queue: str, *, max_messages: int = 0, older_than: Duration = 0
    ) -> MoveResult: ...

    @property
    def clock(self) -> Clock:
        """The clock by which leases end (`lease_deadline`)."""

    def receiver(self, queue: str, **options: Unpack[ReceiverOptions]) -> AsyncReceiver: ...

    @property
    def workers(self) -> Workers:
        """The handlers declared with `worker`."""

    @overload
    def worker(self, queue: str, *, type: type[T], **options: Unpack[RunOptions]) -> Declare[T]: ...

    @overload
    def worker(self, queue: str, **options: Unpack[ReceiverOptions]) -> Callable[[H], H]: ...

    def worker(self, queue: str, **options: Unpack[ReceiverOptions]) -> Any: ...

    async def run_workers(self, *, handle_signals: bool = False) -> bool:
        """Run everything declared with `worker` until a failure that lasts, cancellation or,
        if they are handled, SIGINT or SIGTERM; see `AsyncReceiver.run`."""

    async def observe(self) -> Observation: ...

    async def status(self) -> StoreStatus: ...

    async def close(self) -> None: ...


def _describe_alike(described: type, twins: type) -> None:
    """The async operations are described by the words of the sync ones."""
    for name, operation in vars(described).items():
        twin = vars(twins).get(name)
        if callable(operation) and callable(twin) and twin.__doc__ is None:
            twin.__doc__ = operation.__doc__


_describe_alike(MQ, AsyncMQ)
_describe_alike(KeyOperations, AsyncKeyOperations)

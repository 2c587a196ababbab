"""`Client`: a broker as an `MQ`."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from mqlite import arguments, wire
from mqlite.client import keys
from mqlite.client.call import Call, Steps
from mqlite.client.connections import Connections
from mqlite.client.discipline import Attempt, exchange
from mqlite.client.operations import Operations
from mqlite.client.results import handles
from mqlite.client.target import Options, Target
from mqlite.clock import Clock
from mqlite.durations import Duration, When
from mqlite.handles import SyncHandle
from mqlite.keys import DEFAULT_KEY_PAGE, CreatedKey, KeyPage, KeySort, Permission
from mqlite.messages import Message
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

T = TypeVar("T")


class Client(SyncHandle):
    """The operations of `MQ` on a running broker, for sync callers; see `connect`.

    Share it between threads. Beyond what `MQ` says, calls raise Unavailable where the broker
    cannot be reached and nothing was done, OutcomeUnknown where that is not known, Unsupported
    where the broker is older than the operation, Unauthenticated and PermissionDenied. A
    client that was made before a fork works in the child, over connections of its own.
    """

    def __init__(self, endpoint: str, *, token: str = "", **options: Unpack[Options]) -> None:
        self._attach(Target(endpoint, token, options))

    def _attach(self, target: Target) -> None:
        self._target = target
        self._connections = Connections(target)
        self._ops = Operations(target.clock)

    @classmethod
    def of(cls, target: Target) -> Self:
        """A client of an endpoint that has been read already."""
        client = cls.__new__(cls)
        client._attach(target)
        return client

    @property
    def base_url(self) -> str:
        """The broker's address, without a credential."""
        return self._target.base_url

    @property
    def clock(self) -> Clock:
        """The clock by which leases end (`lease_deadline`)."""
        return self._target.clock

    def blocking(self) -> Self:
        """Another client of the same broker, to be closed by itself."""
        return self.of(self._target)

    def __repr__(self) -> str:
        return f"<Client {self.base_url!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._end_runs()
        self._connections.close()

    def create_queue(
        self, name: str, *, kind: Kind = "queue", **settings: Unpack[QueueSettings]
    ) -> None:
        self._call(self._ops.create_queue(name, kind, settings))

    def delete_queue(self, name: str, *, generation: str | None = None) -> None:
        self._steps(self._ops.delete_queue(name, generation))

    def pause_queue(self, name: str) -> None:
        self._call(self._ops.pause_queue(name))

    def resume_queue(self, name: str) -> None:
        self._call(self._ops.resume_queue(name))

    def list_queues(self) -> list[QueueInfo]:
        return self._call(self._ops.list_queues())

    def subscribe(self, topic: str, name: str, *, expr: str = "") -> None:
        self._call(self._ops.subscribe(topic, name, expr))

    def unsubscribe(self, topic: str, name: str, *, generation: str | None = None) -> None:
        self._steps(self._ops.unsubscribe(topic, name, generation))

    def list_subscriptions(self) -> list[SubscriptionInfo]:
        return self._call(self._ops.list_subscriptions())

    def test_filter(
        self,
        expr: str,
        message: OutMessage | Body | None = None,
        *,
        enqueued_at: When | None = None,
        visible_at: When | None = None,
    ) -> FilterTest:
        return self._call(self._ops.test_filter(expr, message, enqueued_at, visible_at))

    def send(
        self,
        queue: str,
        body: Body = b"",
        *,
        at: When | None = None,
        ttl: Duration | None = None,
        **fields: Unpack[MessageFields],
    ) -> int:
        message = arguments.out_message(body, fields)
        return self._call(self._ops.send(queue, [message], at, ttl))[0]

    def send_batch(
        self,
        queue: str,
        messages: Iterable[OutMessage | Body],
        *,
        at: When | None = None,
        ttl: Duration | None = None,
    ) -> list[int]:
        return self._call(self._ops.send(queue, arguments.out_messages(messages), at, ttl))

    def cancel(self, queue: str, seq_number: int) -> None:
        self._call(self._ops.cancel(queue, seq_number))

    def receive(
        self,
        queue: str,
        *,
        max_messages: int = 1,
        wait: Duration = 0,
        mode: ReceiveMode = "peek_lock",
        attempt_id: str = "",
    ) -> list[Message]:
        call = self._ops.receive(queue, max_messages, wait, mode, attempt_id)
        return handles(Message, queue, self._call(call), self)

    def receive_deferred(self, queue: str, seq_numbers: Iterable[int]) -> list[Message]:
        call = self._ops.receive_deferred(queue, seq_numbers)
        return handles(Message, queue, self._call(call), self)

    def complete(self, queue: str, seq_number: int, lock_token: str) -> None:
        self._call(self._ops.settle("Complete", queue, seq_number, lock_token))

    def complete_batch(self, queue: str, leases: Iterable[Lease | Message]) -> list[SettleResult]:
        return self._call(self._ops.complete_batch(queue, leases))

    def abandon(
        self,
        queue: str,
        seq_number: int,
        lock_token: str,
        *,
        delay: Duration = 0,
        snooze: bool = False,
    ) -> None:
        self._call(self._ops.abandon(queue, seq_number, lock_token, delay, snooze))

    def release(self, queue: str, seq_number: int, lock_token: str) -> None:
        self._call(self._ops.settle("Release", queue, seq_number, lock_token))

    def reject(
        self,
        queue: str,
        seq_number: int,
        lock_token: str,
        *,
        reason: str = "",
        description: str = "",
    ) -> None:
        self._call(self._ops.reject(queue, seq_number, lock_token, reason, description))

    def defer(self, queue: str, seq_number: int, lock_token: str) -> None:
        self._call(self._ops.settle("Defer", queue, seq_number, lock_token))

    def renew(self, queue: str, seq_number: int, lock_token: str) -> RenewResult:
        return self._steps(self._ops.renew(queue, seq_number, lock_token))

    def renew_batch(self, queue: str, leases: Iterable[Lease | Message]) -> list[RenewResult]:
        return self._call(self._ops.renew_batch(queue, leases))

    def peek(
        self,
        queue: str,
        *,
        from_seq: int = 0,
        state: State | None = None,
        max_messages: int = 32,
    ) -> list[MessageData]:
        return self._call(self._ops.peek(queue, from_seq, state, max_messages))

    def stats(self, queue: str) -> QueueStats:
        return self._call(self._ops.stats(queue))

    def redrive(
        self,
        queue: str,
        *,
        target: str = "",
        max_messages: int = 0,
        older_than: Duration = 0,
        rate_per_second: int = 0,
    ) -> MoveResult:
        call = self._ops.redrive(queue, target, max_messages, older_than, rate_per_second)
        return self._call(call)

    def purge(self, queue: str, *, max_messages: int = 0, older_than: Duration = 0) -> MoveResult:
        return self._call(self._ops.purge(queue, max_messages, older_than))

    def observe(self) -> Observation:
        return self._call(self._ops.observe())

    def status(self) -> StoreStatus:
        return self._call(self._ops.status())

    def create_key(
        self,
        id: str,
        *,
        name: str,
        permissions: Iterable[Permission],
        expires_at: When | None = None,
    ) -> CreatedKey:
        return self._call(keys.create_key(id, name, permissions, expires_at, self.clock.now()))

    def list_keys(
        self, *, after_id: str = "", limit: int = DEFAULT_KEY_PAGE, sort: KeySort = "id_asc"
    ) -> KeyPage:
        return self._call(keys.list_keys(after_id, limit, sort))

    def revoke_key(self, id: str) -> None:
        self._call(keys.revoke_key(id))

    def broker_status(self) -> wire.StatusResponse:
        """`status`, and what only a broker has: version, uptime, whether it asks for tokens."""
        return self._call(self._ops.broker_status())

    def _call(self, call: Call[T]) -> T:
        """Run the exchange of one call over a connection."""
        target = self._target
        steps = exchange(call, target.patience, target.clock, target.base_url)
        came_of_it: Any = None
        try:
            while True:
                step = steps.send(came_of_it)
                if isinstance(step, Attempt):
                    came_of_it = self._connections.attempt(step)
                else:
                    came_of_it = self._connections.pause(step.seconds)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]

    def _steps(self, steps: Steps[T]) -> T:
        """Run an operation that takes several calls."""
        step = next(steps)
        try:
            while True:
                try:
                    result = self._call(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]


def connect(endpoint: str, *, token: str = "", **options: Unpack[Options]) -> Client:
    """A client of the broker at `endpoint`, an http(s) URL or `mqlite(s)://[token@]host[:port]`;
    `token` overrides the one written there.

    Nothing is sent before the first call, so the broker may start later; `status()` tells
    whether it is there.

    `timeout` is how long a call waits for an answer, beyond what the broker was asked to wait
    (30 s); `connect_timeout` for how long it tries to connect (5 s); `retry_for` for how long
    what may be repeated is repeated after its answer was lost (10 s, 0 for not at all).
    `ssl_context` replaces the one that verifies against the system's authorities; `clock`
    is for tests. Raises InvalidArgument.
    """
    return Client(endpoint, token=token, **options)

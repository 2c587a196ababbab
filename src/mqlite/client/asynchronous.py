"""`AsyncClient`: a broker as an `AsyncMQ`."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from mqlite import arguments, wire
from mqlite.client import keys
from mqlite.client.call import Call, Steps
from mqlite.client.coalescing import Coalescer, Destination
from mqlite.client.discipline import Attempt, exchange
from mqlite.client.operations import Operations
from mqlite.client.results import handles
from mqlite.client.session import Session
from mqlite.client.sync import Client
from mqlite.client.target import Options, Target
from mqlite.clock import Clock
from mqlite.durations import Duration, When
from mqlite.handles import AsyncHandle
from mqlite.keys import DEFAULT_KEY_PAGE, CreatedKey, KeyPage, KeySort, Permission
from mqlite.messages import AsyncMessage
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


class AsyncClient(AsyncHandle):
    """The operations of `AsyncMQ` on a running broker; see `connect_async`.

    Share it between the tasks of one event loop, the one that first calls it; another loop
    needs a client of its own. Raises what `Client` raises. Single sends of tasks that send at
    the same time travel in one request: each succeeds or fails alone, and what one task sends
    after another arrives after it. A send that is cancelled may have been done.
    """

    def __init__(self, endpoint: str, *, token: str = "", **options: Unpack[Options]) -> None:
        self._target = Target(endpoint, token, options)
        self._session = Session(self._target)
        self._ops = Operations(self._target.clock)
        self._coalescer = Coalescer(self._exchange)

    @property
    def base_url(self) -> str:
        """The broker's address, without a credential."""
        return self._target.base_url

    @property
    def clock(self) -> Clock:
        """The clock by which leases end (`lease_deadline`)."""
        return self._target.clock

    def blocking(self) -> Client:
        """A client of the same broker for threads, with connections of its own; closing either
        does not close the other."""
        return Client.of(self._target)

    def __repr__(self) -> str:
        return f"<AsyncClient {self.base_url!r}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        self._end_runs()
        await self._session.drain()
        await self._coalescer.settle()
        await self._session.close()

    async def create_queue(
        self, name: str, *, kind: Kind = "queue", **settings: Unpack[QueueSettings]
    ) -> None:
        await self._call(self._ops.create_queue(name, kind, settings))

    async def delete_queue(self, name: str, *, generation: str | None = None) -> None:
        await self._steps(self._ops.delete_queue(name, generation))

    async def pause_queue(self, name: str) -> None:
        await self._call(self._ops.pause_queue(name))

    async def resume_queue(self, name: str) -> None:
        await self._call(self._ops.resume_queue(name))

    async def list_queues(self) -> list[QueueInfo]:
        return await self._call(self._ops.list_queues())

    async def subscribe(self, topic: str, name: str, *, expr: str = "") -> None:
        await self._call(self._ops.subscribe(topic, name, expr))

    async def unsubscribe(self, topic: str, name: str, *, generation: str | None = None) -> None:
        await self._steps(self._ops.unsubscribe(topic, name, generation))

    async def list_subscriptions(self) -> list[SubscriptionInfo]:
        return await self._call(self._ops.list_subscriptions())

    async def test_filter(
        self,
        expr: str,
        message: OutMessage | Body | None = None,
        *,
        enqueued_at: When | None = None,
        visible_at: When | None = None,
    ) -> FilterTest:
        return await self._call(self._ops.test_filter(expr, message, enqueued_at, visible_at))

    async def send(
        self,
        queue: str,
        body: Body = b"",
        *,
        at: When | None = None,
        ttl: Duration | None = None,
        **fields: Unpack[MessageFields],
    ) -> int:
        message = arguments.out_message(body, fields)
        with self._session.entered():
            return await self._coalescer.send(
                Destination(arguments.text(queue, "queue"), *self._ops.times(at, ttl)), message
            )

    async def send_batch(
        self,
        queue: str,
        messages: Iterable[OutMessage | Body],
        *,
        at: When | None = None,
        ttl: Duration | None = None,
    ) -> list[int]:
        return await self._call(self._ops.send(queue, arguments.out_messages(messages), at, ttl))

    async def cancel(self, queue: str, seq_number: int) -> None:
        await self._call(self._ops.cancel(queue, seq_number))

    async def receive(
        self,
        queue: str,
        *,
        max_messages: int = 1,
        wait: Duration = 0,
        mode: ReceiveMode = "peek_lock",
        attempt_id: str = "",
    ) -> list[AsyncMessage]:
        call = self._ops.receive(queue, max_messages, wait, mode, attempt_id)
        return handles(AsyncMessage, queue, await self._call(call), self)

    async def receive_deferred(self, queue: str, seq_numbers: Iterable[int]) -> list[AsyncMessage]:
        call = self._ops.receive_deferred(queue, seq_numbers)
        return handles(AsyncMessage, queue, await self._call(call), self)

    async def complete(self, queue: str, seq_number: int, lock_token: str) -> None:
        await self._call(self._ops.settle("Complete", queue, seq_number, lock_token))

    async def complete_batch(
        self, queue: str, leases: Iterable[Lease | AsyncMessage]
    ) -> list[SettleResult]:
        return await self._call(self._ops.complete_batch(queue, leases))

    async def abandon(
        self,
        queue: str,
        seq_number: int,
        lock_token: str,
        *,
        delay: Duration = 0,
        snooze: bool = False,
    ) -> None:
        await self._call(self._ops.abandon(queue, seq_number, lock_token, delay, snooze))

    async def release(self, queue: str, seq_number: int, lock_token: str) -> None:
        await self._call(self._ops.settle("Release", queue, seq_number, lock_token))

    async def reject(
        self,
        queue: str,
        seq_number: int,
        lock_token: str,
        *,
        reason: str = "",
        description: str = "",
    ) -> None:
        await self._call(self._ops.reject(queue, seq_number, lock_token, reason, description))

    async def defer(self, queue: str, seq_number: int, lock_token: str) -> None:
        await self._call(self._ops.settle("Defer", queue, seq_number, lock_token))

    async def renew(self, queue: str, seq_number: int, lock_token: str) -> RenewResult:
        return await self._steps(self._ops.renew(queue, seq_number, lock_token))

    async def renew_batch(
        self, queue: str, leases: Iterable[Lease | AsyncMessage]
    ) -> list[RenewResult]:
        return await self._call(self._ops.renew_batch(queue, leases))

    async def peek(
        self,
        queue: str,
        *,
        from_seq: int = 0,
        state: State | None = None,
        max_messages: int = 32,
    ) -> list[MessageData]:
        return await self._call(self._ops.peek(queue, from_seq, state, max_messages))

    async def stats(self, queue: str) -> QueueStats:
        return await self._call(self._ops.stats(queue))

    async def redrive(
        self,
        queue: str,
        *,
        target: str = "",
        max_messages: int = 0,
        older_than: Duration = 0,
        rate_per_second: int = 0,
    ) -> MoveResult:
        call = self._ops.redrive(queue, target, max_messages, older_than, rate_per_second)
        return await self._call(call)

    async def purge(
        self, queue: str, *, max_messages: int = 0, older_than: Duration = 0
    ) -> MoveResult:
        return await self._call(self._ops.purge(queue, max_messages, older_than))

    async def observe(self) -> Observation:
        return await self._call(self._ops.observe())

    async def status(self) -> StoreStatus:
        return await self._call(self._ops.status())

    async def create_key(
        self,
        id: str,
        *,
        name: str,
        permissions: Iterable[Permission],
        expires_at: When | None = None,
    ) -> CreatedKey:
        return await self._call(
            keys.create_key(id, name, permissions, expires_at, self.clock.now())
        )

    async def list_keys(
        self, *, after_id: str = "", limit: int = DEFAULT_KEY_PAGE, sort: KeySort = "id_asc"
    ) -> KeyPage:
        return await self._call(keys.list_keys(after_id, limit, sort))

    async def revoke_key(self, id: str) -> None:
        await self._call(keys.revoke_key(id))

    async def broker_status(self) -> wire.StatusResponse:
        """`status`, and what only a broker has: version, uptime, whether it asks for tokens."""
        return await self._call(self._ops.broker_status())

    async def _call(self, call: Call[T]) -> T:
        with self._session.entered():
            return await self._exchange(call)

    async def _exchange(self, call: Call[T]) -> T:
        """Run the exchange of one call over the session."""
        target = self._target
        steps = exchange(call, target.patience, target.clock, target.base_url)
        came_of_it: Any = None
        try:
            while True:
                step = steps.send(came_of_it)
                if isinstance(step, Attempt):
                    came_of_it = await self._session.attempt(step)
                else:
                    came_of_it = await self._session.pause(step.seconds)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]

    async def _steps(self, steps: Steps[T]) -> T:
        """Run an operation that takes several calls."""
        step = next(steps)
        try:
            while True:
                try:
                    result = await self._call(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]


async def connect_async(
    endpoint: str, *, token: str = "", **options: Unpack[Options]
) -> AsyncClient:
    """`connect` for async callers; needs the `client` extra."""
    return AsyncClient(endpoint, token=token, **options)

"""The in-process queue for async callers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self, Unpack

from mqlite import arguments
from mqlite.clock import Clock
from mqlite.durations import Duration, When
from mqlite.embedded import handing
from mqlite.embedded.core import Core
from mqlite.embedded.joining import Joined
from mqlite.embedded.options import Options
from mqlite.embedded.synchronous import Embedded, Guest
from mqlite.embedded.transaction import AsyncTransaction, transaction_async
from mqlite.engine import browse, doctor, keys, queues, topics
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


class AsyncEmbedded(AsyncHandle):
    """A queue in this process, for async callers; satisfies `AsyncMQ`, where its operations are
    described.

    Share it between tasks, of several event loops too. Close it, or use it as a context
    manager. After a fork every call raises WrongProcess: open the queue again in the child.
    """

    remote = False

    def __init__(self, core: Core) -> None:
        self.core = core

    @property
    def clock(self) -> Clock:
        """What the queue measures time by."""
        return self.core.clock

    def blocking(self) -> Embedded:
        """A handle on this open queue for sync callers. Closing it ends its own long polls
        and leaves the queue open."""
        return Guest(self.core)

    async def create_queue(
        self, name: str, *, kind: Kind = "queue", **settings: Unpack[QueueSettings]
    ) -> None:
        await self.core.run_async(self.core.calls.create_queue(name, kind, settings))

    async def delete_queue(self, name: str, *, generation: str | None = None) -> None:
        if generation is None:
            generation = await self.core.run_async(queues.generation(name))
        await self.core.run_async(self.core.calls.delete_queue(name, generation))

    async def pause_queue(self, name: str) -> None:
        await self.core.run_async(queues.set_paused(name, True))

    async def resume_queue(self, name: str) -> None:
        await self.core.run_async(queues.set_paused(name, False))

    async def list_queues(self) -> list[QueueInfo]:
        return await self.core.run_async(queues.list_queues())

    async def subscribe(self, topic: str, name: str, *, expr: str = "") -> None:
        await self.core.subscribe_async(topic, name, arguments.text(expr, "expr"))

    async def unsubscribe(self, topic: str, name: str, *, generation: str | None = None) -> None:
        if generation is None:
            generation = await self.core.run_async(topics.generation(topic, name))
        await self.core.run_async(self.core.calls.unsubscribe(topic, name, generation))

    async def list_subscriptions(self) -> list[SubscriptionInfo]:
        return await self.core.run_async(topics.list_subscriptions())

    async def test_filter(
        self,
        expr: str,
        message: OutMessage | Body | None = None,
        *,
        enqueued_at: When | None = None,
        visible_at: When | None = None,
    ) -> FilterTest:
        self.core.check_open()
        trial = self.core.calls.test_filter(expr, message, enqueued_at, visible_at)
        return await asyncio.to_thread(trial)

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
        times = self.core.calls.times(at, ttl)
        return (await self.core.send_async(queue, [message], *times))[0]

    async def send_batch(
        self,
        queue: str,
        messages: Iterable[OutMessage | Body],
        *,
        at: When | None = None,
        ttl: Duration | None = None,
    ) -> list[int]:
        made = arguments.out_messages(messages)
        return await self.core.send_async(queue, made, *self.core.calls.times(at, ttl))

    async def cancel(self, queue: str, seq_number: int) -> None:
        await self.core.run_async(self.core.calls.cancel(queue, seq_number))

    async def receive(
        self,
        queue: str,
        *,
        max_messages: int = 1,
        wait: Duration = 0,
        mode: ReceiveMode = "peek_lock",
        attempt_id: str = "",
    ) -> list[AsyncMessage]:
        claimed = await self.core.receive_async(
            queue,
            arguments.batch_size(max_messages),
            arguments.wait_ms(wait),
            arguments.receive_mode(mode),
            arguments.text(attempt_id, "attempt_id"),
        )
        return self._handles(queue, claimed)

    async def receive_deferred(self, queue: str, seq_numbers: Iterable[int]) -> list[AsyncMessage]:
        claimed = await self.core.run_async(self.core.calls.receive_deferred(queue, seq_numbers))
        return self._handles(queue, claimed)

    async def complete(self, queue: str, seq_number: int, lock_token: str) -> None:
        await self.core.run_async(self.core.calls.complete(queue, seq_number, lock_token))

    async def complete_batch(
        self, queue: str, leases: Iterable[Lease | AsyncMessage]
    ) -> list[SettleResult]:
        return await self.core.run_async(self.core.calls.complete_batch(queue, leases))

    async def abandon(
        self,
        queue: str,
        seq_number: int,
        lock_token: str,
        *,
        delay: Duration = 0,
        snooze: bool = False,
    ) -> None:
        await self.core.run_async(
            self.core.calls.abandon(queue, seq_number, lock_token, delay, snooze)
        )

    async def release(self, queue: str, seq_number: int, lock_token: str) -> None:
        await self.core.run_async(self.core.calls.release(queue, seq_number, lock_token))

    async def reject(
        self,
        queue: str,
        seq_number: int,
        lock_token: str,
        *,
        reason: str = "",
        description: str = "",
    ) -> None:
        await self.core.run_async(
            self.core.calls.reject(queue, seq_number, lock_token, reason, description)
        )

    async def defer(self, queue: str, seq_number: int, lock_token: str) -> None:
        await self.core.run_async(self.core.calls.defer(queue, seq_number, lock_token))

    async def renew(self, queue: str, seq_number: int, lock_token: str) -> RenewResult:
        result = await self.core.run_async(self.core.calls.renew(queue, seq_number, lock_token))
        return handing.renewal(result, self.clock)

    async def renew_batch(
        self, queue: str, leases: Iterable[Lease | AsyncMessage]
    ) -> list[RenewResult]:
        results = await self.core.run_async(self.core.calls.renew_batch(queue, leases))
        return [handing.renewal(result, self.clock) for result in results]

    async def peek(
        self,
        queue: str,
        *,
        from_seq: int = 0,
        state: State | None = None,
        max_messages: int = 32,
    ) -> list[MessageData]:
        return await self.core.run_async(self.core.calls.peek(queue, from_seq, state, max_messages))

    async def stats(self, queue: str) -> QueueStats:
        return await self.core.run_async(browse.stats(queue))

    async def redrive(
        self,
        queue: str,
        *,
        target: str = "",
        max_messages: int = 0,
        older_than: Duration = 0,
        rate_per_second: int = 0,
    ) -> MoveResult:
        plan = self.core.calls.redrive(queue, target, max_messages, older_than, rate_per_second)
        return await self.core.drive_async(plan)

    async def purge(
        self, queue: str, *, max_messages: int = 0, older_than: Duration = 0
    ) -> MoveResult:
        return await self.core.drive_async(self.core.calls.purge(queue, max_messages, older_than))

    async def create_key(
        self,
        id: str,
        *,
        name: str,
        permissions: Iterable[Permission],
        expires_at: When | None = None,
    ) -> CreatedKey:
        return await self.core.run_async(
            self.core.calls.create_key(id, name, permissions, expires_at)
        )

    async def list_keys(
        self, *, after_id: str = "", limit: int = DEFAULT_KEY_PAGE, sort: KeySort = "id_asc"
    ) -> KeyPage:
        return await self.core.run_async(self.core.calls.list_keys(after_id, limit, sort))

    async def revoke_key(self, id: str) -> None:
        await self.core.run_async(keys.revoke(id))

    async def status(self) -> StoreStatus:
        return await self.core.status_async()

    async def observe(self) -> Observation:
        return await self.core.observe_async()

    def transaction(self) -> AbstractAsyncContextManager[AsyncTransaction]:
        """One commit for the caller's SQL, sends and settlements, on the queue's file.

        An exception in the block rolls everything back. Meanwhile nothing else can write,
        and in this context every call that is not made through the transaction raises
        InTransaction.
        """
        return transaction_async(self.core.store, self.core.calls)

    def join(self, connection: Any) -> Joined:
        """Send and settle inside a transaction the caller has on the queue's file.

        `connection` is a `sqlite3.Connection`, a SQLAlchemy `Connection` or `Session`, or
        Django's connection. What is done becomes true with the caller's commit, and
        receivers wake then, without the caller's help. Its methods are sync: they run on the
        caller's connection. Raises InvalidArgument for a connection to another file or
        without a transaction, TransactionNotWritable.
        """
        return self.core.join(connection)

    async def vacuum(self, *, full: bool = False) -> None:
        """Give free pages back to the file system; `full` rewrites the whole file, during
        which nothing else can use it. Raises Unavailable."""
        await asyncio.to_thread(self.core.store.vacuum, full=full)

    async def examine(self) -> list[str]:
        """What is wrong with the database, a line each; empty when all that must hold does."""
        return await self.core.run_async(doctor.examine())

    async def maintain(self) -> None:
        """Run every maintenance pass once, in the documented order. With an injected clock
        nothing else does."""
        await asyncio.to_thread(self.core.maintain)

    async def close(self) -> None:
        await self.core.close_async()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncEmbedded {self.core.store.location!r}>"

    def _handles(self, queue: str, claimed: Iterable[MessageData]) -> list[AsyncMessage]:
        return handing.messages(AsyncMessage, claimed, queue, self, self.core.clock)


async def open_async(
    database: str | os.PathLike[str] = "file:./mq.db", **options: Unpack[Options]
) -> AsyncEmbedded:
    """`open` for async callers: the event loop does not wait for the file."""
    return AsyncEmbedded(await asyncio.to_thread(lambda: Core.open(database, options)))

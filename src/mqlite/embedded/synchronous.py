"""The in-process queue for sync callers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from mqlite import arguments
from mqlite.clock import Clock
from mqlite.durations import Duration, When
from mqlite.embedded import handing
from mqlite.embedded.core import Core
from mqlite.embedded.joining import Joined
from mqlite.embedded.options import Options
from mqlite.embedded.polls import Polls
from mqlite.embedded.transaction import Transaction, transaction
from mqlite.engine import browse, doctor, keys, queues, topics
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

if TYPE_CHECKING:
    from mqlite.broker.auth import Tokens
    from mqlite.broker.options import ServeOptions


class Embedded(SyncHandle):
    """A queue in this process, for sync callers; satisfies `MQ`, where its operations are
    described.

    Share it between threads. Close it, or use it as a context manager. After a fork every
    call raises WrongProcess: open the queue again in the child.
    """

    remote = False

    def __init__(self, core: Core) -> None:
        self.core = core
        self._polls = Polls()

    @property
    def clock(self) -> Clock:
        """What the queue measures time by."""
        return self.core.clock

    def blocking(self) -> Embedded:
        """Another handle on this open queue. Closing it ends its own long polls, which
        answer what they have, and leaves the queue open."""
        return Guest(self.core)

    def create_queue(
        self, name: str, *, kind: Kind = "queue", **settings: Unpack[QueueSettings]
    ) -> None:
        self.core.run(self.core.calls.create_queue(name, kind, settings))

    def delete_queue(self, name: str, *, generation: str | None = None) -> None:
        if generation is None:
            generation = self.core.run(queues.generation(name))
        self.core.run(self.core.calls.delete_queue(name, generation))

    def pause_queue(self, name: str) -> None:
        self.core.run(queues.set_paused(name, True))

    def resume_queue(self, name: str) -> None:
        self.core.run(queues.set_paused(name, False))

    def list_queues(self) -> list[QueueInfo]:
        return self.core.run(queues.list_queues())

    def subscribe(self, topic: str, name: str, *, expr: str = "") -> None:
        self.core.subscribe(topic, name, arguments.text(expr, "expr"))

    def unsubscribe(self, topic: str, name: str, *, generation: str | None = None) -> None:
        if generation is None:
            generation = self.core.run(topics.generation(topic, name))
        self.core.run(self.core.calls.unsubscribe(topic, name, generation))

    def list_subscriptions(self) -> list[SubscriptionInfo]:
        return self.core.run(topics.list_subscriptions())

    def test_filter(
        self,
        expr: str,
        message: OutMessage | Body | None = None,
        *,
        enqueued_at: When | None = None,
        visible_at: When | None = None,
    ) -> FilterTest:
        self.core.check_open()
        return self.core.calls.test_filter(expr, message, enqueued_at, visible_at)()

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
        return self.core.send(queue, [message], *self.core.calls.times(at, ttl))[0]

    def send_batch(
        self,
        queue: str,
        messages: Iterable[OutMessage | Body],
        *,
        at: When | None = None,
        ttl: Duration | None = None,
    ) -> list[int]:
        made = arguments.out_messages(messages)
        return self.core.send(queue, made, *self.core.calls.times(at, ttl))

    def cancel(self, queue: str, seq_number: int) -> None:
        self.core.run(self.core.calls.cancel(queue, seq_number))

    def receive(
        self,
        queue: str,
        *,
        max_messages: int = 1,
        wait: Duration = 0,
        mode: ReceiveMode = "peek_lock",
        attempt_id: str = "",
    ) -> list[Message]:
        claimed = self.core.receive(
            queue,
            arguments.batch_size(max_messages),
            arguments.wait_ms(wait),
            arguments.receive_mode(mode),
            arguments.text(attempt_id, "attempt_id"),
            self._polls,
        )
        return self._handles(queue, claimed)

    def receive_deferred(self, queue: str, seq_numbers: Iterable[int]) -> list[Message]:
        claimed = self.core.run(self.core.calls.receive_deferred(queue, seq_numbers))
        return self._handles(queue, claimed)

    def complete(self, queue: str, seq_number: int, lock_token: str) -> None:
        self.core.run(self.core.calls.complete(queue, seq_number, lock_token))

    def complete_batch(self, queue: str, leases: Iterable[Lease | Message]) -> list[SettleResult]:
        return self.core.run(self.core.calls.complete_batch(queue, leases))

    def abandon(
        self,
        queue: str,
        seq_number: int,
        lock_token: str,
        *,
        delay: Duration = 0,
        snooze: bool = False,
    ) -> None:
        self.core.run(self.core.calls.abandon(queue, seq_number, lock_token, delay, snooze))

    def release(self, queue: str, seq_number: int, lock_token: str) -> None:
        self.core.run(self.core.calls.release(queue, seq_number, lock_token))

    def reject(
        self,
        queue: str,
        seq_number: int,
        lock_token: str,
        *,
        reason: str = "",
        description: str = "",
    ) -> None:
        self.core.run(self.core.calls.reject(queue, seq_number, lock_token, reason, description))

    def defer(self, queue: str, seq_number: int, lock_token: str) -> None:
        self.core.run(self.core.calls.defer(queue, seq_number, lock_token))

    def renew(self, queue: str, seq_number: int, lock_token: str) -> RenewResult:
        result = self.core.run(self.core.calls.renew(queue, seq_number, lock_token))
        return handing.renewal(result, self.clock)

    def renew_batch(self, queue: str, leases: Iterable[Lease | Message]) -> list[RenewResult]:
        results = self.core.run(self.core.calls.renew_batch(queue, leases))
        return [handing.renewal(result, self.clock) for result in results]

    def peek(
        self,
        queue: str,
        *,
        from_seq: int = 0,
        state: State | None = None,
        max_messages: int = 32,
    ) -> list[MessageData]:
        return self.core.run(self.core.calls.peek(queue, from_seq, state, max_messages))

    def stats(self, queue: str) -> QueueStats:
        return self.core.run(browse.stats(queue))

    def redrive(
        self,
        queue: str,
        *,
        target: str = "",
        max_messages: int = 0,
        older_than: Duration = 0,
        rate_per_second: int = 0,
    ) -> MoveResult:
        plan = self.core.calls.redrive(queue, target, max_messages, older_than, rate_per_second)
        return self.core.drive(plan)

    def purge(self, queue: str, *, max_messages: int = 0, older_than: Duration = 0) -> MoveResult:
        return self.core.drive(self.core.calls.purge(queue, max_messages, older_than))

    def create_key(
        self,
        id: str,
        *,
        name: str,
        permissions: Iterable[Permission],
        expires_at: When | None = None,
    ) -> CreatedKey:
        return self.core.run(self.core.calls.create_key(id, name, permissions, expires_at))

    def list_keys(
        self, *, after_id: str = "", limit: int = DEFAULT_KEY_PAGE, sort: KeySort = "id_asc"
    ) -> KeyPage:
        return self.core.run(self.core.calls.list_keys(after_id, limit, sort))

    def revoke_key(self, id: str) -> None:
        self.core.run(keys.revoke(id))

    def status(self) -> StoreStatus:
        return self.core.status()

    def observe(self) -> Observation:
        return self.core.observe()

    def transaction(self) -> AbstractContextManager[Transaction]:
        """One commit for the caller's SQL, sends and settlements, on the queue's file.

        An exception in the block rolls everything back. Meanwhile nothing else can write,
        and in this context every call that is not made through the transaction raises
        InTransaction.
        """
        return transaction(self.core.store, self.core.calls)

    def join(self, connection: Any) -> Joined:
        """Send and settle inside a transaction the caller has on the queue's file.

        `connection` is a `sqlite3.Connection`, a SQLAlchemy `Connection` or `Session`, or
        Django's connection. What is done becomes true with the caller's commit, and
        receivers wake then, without the caller's help. Raises InvalidArgument for a
        connection to another file or without a transaction, TransactionNotWritable.
        """
        return self.core.join(connection)

    def serve(
        self,
        addr: str,
        *,
        tokens: Tokens,
        ready: Callable[[str], None] | None = None,
        **options: Unpack[ServeOptions],
    ) -> None:
        """Serve this queue over HTTP until SIGTERM, SIGINT or `close`; see
        `mqlite.broker.serve.serve`. Needs `mqlite[broker]`."""
        from mqlite.broker.serve import serve

        serve(self, addr, tokens=tokens, ready=ready, **options)

    def serving(
        self, addr: str = "127.0.0.1:0", *, tokens: Tokens, **options: Unpack[ServeOptions]
    ) -> AbstractContextManager[str]:
        """Serve this queue over HTTP in a thread, for the duration of a `with` block that is
        given the URL. Needs `mqlite[broker]`."""
        from mqlite.broker.serve import serving

        return serving(self, addr, tokens=tokens, **options)

    def vacuum(self, *, full: bool = False) -> None:
        """Give free pages back to the file system; `full` rewrites the whole file, during
        which nothing else can use it. Raises Unavailable."""
        self.core.store.vacuum(full=full)

    def examine(self) -> list[str]:
        """What is wrong with the database, a line each; empty when all that must hold does."""
        return self.core.run(doctor.examine())

    def maintain(self) -> None:
        """Run every maintenance pass once, in the documented order. With an injected clock
        nothing else does."""
        self.core.maintain()

    def close(self) -> None:
        self.core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Embedded {self.core.store.location!r}>"

    def _handles(self, queue: str, claimed: Iterable[MessageData]) -> list[Message]:
        return handing.messages(Message, claimed, queue, self, self.core.clock)


class Guest(Embedded):
    """A handle on a queue that is not its own to close."""

    def close(self) -> None:
        self._polls.end()


def open_queue(
    database: str | os.PathLike[str] = "file:./mq.db", **options: Unpack[Options]
) -> Embedded:
    """Open a queue in this process.

    `database` is a path, `file:PATH` or `:memory:`. Options:

    - `synchronous`: NORMAL (default: a power failure may lose the last commits, a crash of
      the process none), FULL, EXTRA or OFF.
    - `max_message_bytes`: largest body, 1 MiB by default.
    - `dlq_max_age`, `dlq_max_count`, `dlq_max_bytes`: bounds for dead letters that queues
      inherit; unbounded by default.
    - `clock`: another source of time; then no maintenance runs by itself, see `maintain`.
    - `logger`: where to log; `logging.getLogger("mqlite")` by default.

    One process owns the file. Raises DatabaseLocked where another one does, SchemaMismatch,
    InvalidArgument, Unavailable.
    """
    return Embedded(Core.open(database, options))

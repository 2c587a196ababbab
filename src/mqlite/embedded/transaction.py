"""Transactions on the queue's own connection: the caller's SQL, sends and settlements in
one commit."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, TypeVar, Unpack

from mqlite.durations import Duration, When
from mqlite.embedded.calls import Calls
from mqlite.embedded.savepoints import Savepoints
from mqlite.embedded.transactional import Settling
from mqlite.engine.steps import Operation
from mqlite.errors import InvalidArgument
from mqlite.messages import BaseMessage
from mqlite.model import Body, Lease, MessageFields, OutMessage, SettleResult
from mqlite.stores.sqlite import SqliteStore
from mqlite.stores.sqlite.transaction import (
    AsyncTransaction as HeldAsync,
    Transaction as Held,
)

T = TypeVar("T")
Parameters = Sequence[Any] | dict[str, Any]


class Transaction(Settling):
    """An open transaction. Nothing else can write until it ends, so keep it short.

    After its end every call raises TransactionClosed.
    """

    def __init__(self, held: Held, calls: Calls) -> None:
        super().__init__(calls)
        self._held = held
        self._savepoints = Savepoints()
        self._cursors: list[sqlite3.Cursor] = []

    def execute(self, sql: str, parameters: Parameters = ()) -> sqlite3.Cursor:
        """Run a statement of the caller's own; the cursor lives until the transaction's
        end. Raises sqlite3.Error, and InvalidArgument for one that would end it."""
        self._held.check()
        _refuse_control(sql)
        self._savepoints.see(sql)
        return self._kept(self._held.connection.execute(sql, parameters))

    def executemany(self, sql: str, rows: Iterable[Parameters]) -> sqlite3.Cursor:
        """Run a statement of the caller's own for each row of parameters. Raises
        sqlite3.Error."""
        self._held.check()
        return self._held.connection.executemany(sql, rows)

    def _kept(self, cursor: sqlite3.Cursor) -> sqlite3.Cursor:
        if cursor.description is not None:
            self._cursors.append(cursor)
        return cursor

    def close_cursors(self) -> None:
        """A statement that was not read to its end would outlive the commit, and keep the
        connection from seeing what others commit."""
        while self._cursors:
            self._cursors.pop().close()

    def finish(self) -> None:
        """What comes before the commit."""
        self.close_cursors()
        if self._savepoints.seen:
            self._held.check()
            self._held.run(self._savepoints.tell())

    def _run(self, operation: Operation[T]) -> T:
        if self._savepoints.seen:
            operation = self._savepoints.guard(operation)
        return self._held.run(operation)


class AsyncTransaction:
    """`Transaction` for a task; the event loop does not wait for the file."""

    def __init__(self, held: HeldAsync, calls: Calls) -> None:
        self._held = held
        self._sync = Transaction(held.transaction, calls)

    async def execute(self, sql: str, parameters: Parameters = ()) -> list[Any]:
        """Run a statement of the caller's own; answers its rows. Raises sqlite3.Error."""
        return await self._held.call(lambda: self._sync.execute(sql, parameters).fetchall())

    async def executemany(self, sql: str, rows: Iterable[Parameters]) -> None:
        """Run a statement of the caller's own for each row of parameters. Raises
        sqlite3.Error."""
        await self._held.call(self._sync.executemany, sql, rows)

    async def finish(self) -> None:
        """See `Transaction.finish`."""
        await self._held.call(self._sync.finish)

    async def send(
        self,
        queue: str,
        body: Body = b"",
        *,
        at: When | None = None,
        ttl: Duration | None = None,
        **fields: Unpack[MessageFields],
    ) -> int:
        """See `Transaction.send`."""
        return await self._held.call(
            partial(
                self._sync.send,
                queue,
                body,
                at=at,
                ttl=ttl,
                **fields,
            )
        )

    async def send_batch(
        self,
        queue: str,
        messages: Iterable[OutMessage | Body],
        *,
        at: When | None = None,
        ttl: Duration | None = None,
    ) -> list[int]:
        """See `Transaction.send_batch`."""
        return await self._held.call(
            partial(self._sync.send_batch, queue, messages, at=at, ttl=ttl)
        )

    async def cancel(self, queue: str, seq_number: int) -> None:
        """See `Transaction.cancel`."""
        await self._held.call(self._sync.cancel, queue, seq_number)

    async def complete(self, queue: str, seq_number: int, lock_token: str) -> None:
        """See `Transaction.complete`."""
        await self._held.call(self._sync.complete, queue, seq_number, lock_token)

    async def complete_batch(
        self, queue: str, leases: Iterable[Lease | BaseMessage]
    ) -> list[SettleResult]:
        """See `Transaction.complete_batch`."""
        return await self._held.call(self._sync.complete_batch, queue, leases)

    async def abandon(
        self,
        queue: str,
        seq_number: int,
        lock_token: str,
        *,
        delay: Duration = 0,
        snooze: bool = False,
    ) -> None:
        """See `Transaction.abandon`."""
        await self._held.call(
            partial(self._sync.abandon, queue, seq_number, lock_token, delay=delay, snooze=snooze)
        )

    async def release(self, queue: str, seq_number: int, lock_token: str) -> None:
        """See `Transaction.release`."""
        await self._held.call(self._sync.release, queue, seq_number, lock_token)

    async def reject(
        self,
        queue: str,
        seq_number: int,
        lock_token: str,
        *,
        reason: str = "",
        description: str = "",
    ) -> None:
        """See `Transaction.reject`."""
        await self._held.call(
            partial(
                self._sync.reject,
                queue,
                seq_number,
                lock_token,
                reason=reason,
                description=description,
            )
        )

    async def defer(self, queue: str, seq_number: int, lock_token: str) -> None:
        """See `Transaction.defer`."""
        await self._held.call(self._sync.defer, queue, seq_number, lock_token)


def _refuse_control(sql: str) -> None:
    """The block ends the transaction: a COMMIT of the caller's own would lose what the sends
    in it have to tell."""
    words = sql.upper().replace(";", " ").split(maxsplit=3)
    ends = words[:1] in (["BEGIN"], ["COMMIT"], ["END"])
    if ends or (words[:1] == ["ROLLBACK"] and "TO" not in words):
        raise InvalidArgument(f"{words[0]} is not for here: the transaction ends with its block")


@contextmanager
def transaction(store: SqliteStore, calls: Calls) -> Generator[Transaction]:
    """Commit at the end of the block; an exception rolls everything back and goes on."""
    held = store.begin()
    open_ = Transaction(held, calls)
    try:
        yield open_
        open_.finish()
        held.commit()
    finally:
        open_.close_cursors()
        held.rollback()


@asynccontextmanager
async def transaction_async(store: SqliteStore, calls: Calls) -> AsyncGenerator[AsyncTransaction]:
    """`transaction` for a task."""
    held = await store.begin_async()
    open_ = AsyncTransaction(held, calls)
    try:
        yield open_
        await open_.finish()
        await held.commit()
    finally:
        await held.rollback()

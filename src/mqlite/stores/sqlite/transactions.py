"""The transactions that callers open on the writer connection, one after the other."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mqlite.engine.steps import Plan
from mqlite.observation.storage import StorageMeter
from mqlite.stores.sqlite.committer import Committer
from mqlite.stores.sqlite.connection import SLICE_S
from mqlite.stores.sqlite.transaction import AsyncTransaction, Transaction
from mqlite.stores.sqlite.writer import Writer


class Transactions:
    """Opens them. `current` is the newest, which may have ended."""

    def __init__(
        self,
        committer: Committer,
        connection: sqlite3.Connection,
        writer: Writer,
        meter: StorageMeter,
        logger: logging.Logger,
    ) -> None:
        self.current: Transaction | None = None
        self._committer = committer
        self._connection = connection
        self._writer = writer
        self._meter = meter
        self._logger = logger
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="mqlite-transaction")

    def begin(self, deadline: float) -> Transaction:
        """A transaction that belongs to the calling context. Raises Unavailable at the
        `deadline` (monotonic), InTransaction."""
        self._writer.take_turn(deadline)
        transaction = self._begin(deadline)
        transaction.belongs_to_context()
        return transaction

    async def begin_async(self, deadline: float) -> AsyncTransaction:
        """`begin` for a task."""
        await self._writer.take_turn_async(deadline)
        beginning = AsyncTransaction.begun(self._executor, lambda: self._begin(deadline))
        transaction = await self._unless_it_waits_for_itself(beginning)
        transaction.belongs_to_context()
        return transaction

    async def _unless_it_waits_for_itself(
        self, beginning: Coroutine[Any, Any, AsyncTransaction]
    ) -> AsyncTransaction:
        # The executor's thread begins, but what may hold it up belongs to this one.
        task = asyncio.ensure_future(beginning)
        doubt = self._writer.doubt()
        try:
            while not (await asyncio.wait((task,), timeout=SLICE_S))[0]:
                if doubt.holds():
                    raise doubt.error()
        except BaseException:
            # Not cancelled: it has begun, or failed to, in this very turn of the loop.
            if not task.cancel() and task.exception() is None:
                self._executor.submit(task.result().transaction.rollback)
            raise
        return task.result()

    def _begin(self, deadline: float) -> Transaction:
        self.current = Transaction(
            self._committer,
            self._connection,
            deadline,
            self._meter,
            self._logger,
            self._writer.give_turn,
        )
        return self.current

    def report_long(self) -> Plan[None]:
        """A pass: log a transaction that has been open for longer than it should."""
        if self.current is not None:
            self.current.report_long()
        yield from ()

    def shutdown(self) -> None:
        """Wait for what tasks have asked for; nothing is begun from here on."""
        self._executor.shutdown()

"""What the sync queue, the async queue and the broker share: one store, one engine."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from mqlite import arguments
from mqlite.clock import Clock
from mqlite.durations import to_ms
from mqlite.embedded.calls import Calls
from mqlite.embedded.gathering import Gathering
from mqlite.embedded.joining import Joined
from mqlite.embedded.observing import Observer
from mqlite.embedded.options import Options
from mqlite.embedded.polls import Polls
from mqlite.engine import catalog, filters, receive, sweeps, topics
from mqlite.engine.receive import Claimed
from mqlite.engine.retention import Bounds
from mqlite.engine.send import Sent
from mqlite.engine.steps import Operation, Plan
from mqlite.errors import Closed, InvalidArgument
from mqlite.integers import MAX_INT64
from mqlite.model import MAX_MESSAGE_BYTES, OutMessage, ReceiveMode, StoreStatus
from mqlite.observation.schema import Observation
from mqlite.stores.callers import recognise, same_file
from mqlite.stores.plans import Stop, drive, drive_async
from mqlite.stores.sqlite import SqliteStore

T = TypeVar("T")


class Core:
    """An open queue. Owns its store; safe to share between threads and event loops."""

    def __init__(self, store: SqliteStore, bounds: Bounds, max_message_bytes: int) -> None:
        self.store = store
        self.clock = store.clock
        self.max_message_bytes = max_message_bytes
        self.calls = Calls(self.clock, max_message_bytes, store.names)
        self.gathering = Gathering(self)
        self._observer = Observer(store)
        self._stops: set[Callable[[], object]] = set()
        self.drive(sweeps.recover())
        store.maintain_with(sweeps.passes(bounds))

    @classmethod
    def open(cls, database: str | os.PathLike[str], options: Options) -> Core:
        """See `mqlite.open`."""
        arguments.check_known(options, Options, "option")
        limit = options.get("max_message_bytes", MAX_MESSAGE_BYTES)
        max_message_bytes = arguments.integer(limit, "max_message_bytes", 1, MAX_INT64)
        _check_types(options)
        bounds = Bounds(
            to_ms(options.get("dlq_max_age") or 0, "dlq_max_age"),
            arguments.bound(options.get("dlq_max_count") or 0, "dlq_max_count"),
            arguments.bound(options.get("dlq_max_bytes") or 0, "dlq_max_bytes"),
        )
        store = SqliteStore(
            database,
            clock=options.get("clock"),
            synchronous=options.get("synchronous", "NORMAL"),
            logger=options.get("logger"),
        )
        try:
            return cls(store, bounds, max_message_bytes)
        except BaseException:
            store.close()
            raise

    @property
    def closing(self) -> bool:
        """Whether new work is refused."""
        return self.store.closing

    def check_open(self) -> None:
        """Raises Closed, for what needs no store."""
        if self.closing:
            raise Closed

    def run(self, operation: Operation[T]) -> T:
        """The operation's result, committed. Raises what it raises, Unavailable, Closed,
        InTransaction, WrongProcess."""
        return self.store.run(operation)

    async def run_async(
        self, operation: Operation[T], abandoned: Callable[[T], object] | None = None
    ) -> T:
        """`run` for a task; a committed result whose task was cancelled is `abandoned`."""
        return await self.store.run_async(operation, abandoned=abandoned)

    def send(self, name: str, messages: list[OutMessage], at: int, ttl_ms: int) -> Sent:
        """Send to a queue or topic; `at` is in epoch ms, 0 for now."""
        target = self.store.names.known(name) or self.run(catalog.look_up(name))
        routes = self.calls.sender.routes(messages, at, target)
        return self.run(self.calls.sender.operation(name, messages, at, ttl_ms, routes))

    async def send_async(self, name: str, messages: list[OutMessage], at: int, ttl_ms: int) -> Sent:
        """`send` for a task."""
        target = self.store.names.known(name) or await self.run_async(catalog.look_up(name))
        routes = await self.calls.sender.routes_async(messages, at, target)
        if len(messages) == 1 and target is not None:
            return Sent([await self.gathering.send(name, messages[0], at, ttl_ms, routes)])
        operation = self.calls.sender.operation(name, messages, at, ttl_ms, routes)
        return await self.run_async(operation)

    def subscribe(self, topic: str, name: str, expr: str) -> None:
        """Subscribe; the filter is compiled before the writer's turn."""
        filters.compiled(expr)
        self.run(topics.subscribe(topic, name, expr))

    async def subscribe_async(self, topic: str, name: str, expr: str) -> None:
        """`subscribe` for a task."""
        if expr:
            await asyncio.to_thread(filters.compiled, expr)
        await self.run_async(topics.subscribe(topic, name, expr))

    def receive(
        self,
        queue: str,
        limit: int,
        wait_ms: int,
        mode: ReceiveMode,
        attempt_id: str,
        polls: Polls,
    ) -> Claimed:
        """Claim, waiting for the first message until `polls` end. When the wait is interrupted,
        what was claimed meanwhile is given back with the delivery uncounted. Raises Closed."""
        claim, give_back = self._claim(queue, limit, mode, attempt_id)
        if not wait_ms:
            return self.store.run(claim, abandoned=give_back)
        end = self.clock.elapsed() + wait_ms
        claimed = self.store.run(claim, abandoned=give_back)
        while self._left(claimed, end) > 0 and not polls.ended:
            with (
                self.store.waiters.join(claimed.queue_id) as place,
                polls.waiting(place.event),
            ):
                claimed = self.store.run(claim, abandoned=give_back)
                while (left := self._left(claimed, end)) > 0 and claimed.queue_id == place.queue_id:
                    if polls.ended:
                        break
                    place.wait(self.clock.now() + left)
                    claimed = self.store.run(claim, abandoned=give_back)
        return claimed

    async def receive_async(
        self, queue: str, limit: int, wait_ms: int, mode: ReceiveMode, attempt_id: str
    ) -> Claimed:
        """`receive` for a task; its cancellation is an interruption."""
        claim, give_back = self._claim(queue, limit, mode, attempt_id)
        end = self.clock.elapsed() + wait_ms
        claimed = await self.run_async(claim, give_back)
        while self._left(claimed, end) > 0:
            with self.store.waiters.join_async(claimed.queue_id) as place:
                claimed = await self.run_async(claim, give_back)
                while (left := self._left(claimed, end)) > 0 and claimed.queue_id == place.queue_id:
                    await place.wait(self.clock.now() + left)
                    claimed = await self.run_async(claim, give_back)
        return claimed

    def _claim(
        self, queue: str, limit: int, mode: ReceiveMode, attempt_id: str
    ) -> tuple[Operation[Claimed], Callable[[Claimed], None]]:
        """The claim, and what undoes it where nobody takes its messages."""

        def give_back(claimed: Claimed) -> None:
            if claimed and mode == "peek_lock":
                leases = [(message.seq_number, message.lock_token) for message in claimed]
                self.store.post(receive.give_back(queue, leases, attempt_id))

        return receive.claim(queue, limit, mode=mode, attempt_id=attempt_id), give_back

    def _left(self, claimed: Claimed, end: int) -> int:
        """For how long to wait on, in milliseconds; not at all if there is an answer."""
        return 0 if claimed or claimed.replayed else end - self.clock.elapsed()

    def join(self, connection: Any) -> Joined:
        """See `Embedded.join`."""
        caller = recognise(connection)
        path = self.store.location.path
        if path is None:
            raise InvalidArgument("a queue in memory cannot be joined; use mq.transaction()")
        same_file(caller.connection, path)
        return Joined(caller, self.calls, self.clock, self.store.expect_foreign_commit)

    def drive(self, plan: Plan[T]) -> T:
        """Run a plan to its end; closing asks it to end with what it has done."""
        stop = Stop(threading.Event())
        with self._stopped_by_close(stop.request):
            return drive(plan, self.run, self.clock, stop)

    async def drive_async(self, plan: Plan[T], budget_ms: int | None = None) -> T:
        """Run a plan; after `budget_ms` of real time it is asked to end with what it has
        done."""
        stop = Stop(asyncio.Event())
        loop = asyncio.get_running_loop()
        timer = None if budget_ms is None else loop.call_later(budget_ms / 1000, stop.request)
        with self._stopped_by_close(lambda: loop.call_soon_threadsafe(stop.request)):
            try:
                return await drive_async(plan, self.run_async, self.clock, stop)
            finally:
                if timer is not None:
                    timer.cancel()

    @contextmanager
    def _stopped_by_close(self, stop: Callable[[], object]) -> Generator[None]:
        self._stops.add(stop)
        try:
            yield
        finally:
            self._stops.discard(stop)

    def status(self) -> StoreStatus:
        return self._observer.status()

    async def status_async(self) -> StoreStatus:
        return await asyncio.to_thread(self._observer.status)

    def observe(self) -> Observation:
        return self._observer.observe()

    async def observe_async(self) -> Observation:
        return await asyncio.to_thread(self._observer.observe)

    def maintain(self) -> None:
        self.store.maintain()

    def close(self) -> None:
        """Refuse new work, wake long polls, wait for admitted work, release the file."""
        for stop in list(self._stops):
            stop()
        self.store.close()

    async def close_async(self) -> None:
        await asyncio.to_thread(self.close)


def _check_types(options: Options) -> None:
    """What would fail later only, in the midst of some operation."""
    clock, logger = options.get("clock"), options.get("logger")
    if clock is not None and not isinstance(clock, Clock):
        raise InvalidArgument(f"clock must be a mqlite.Clock, got {type(clock).__name__}")
    if logger is not None and not isinstance(logger, logging.Logger):
        raise InvalidArgument(f"logger must be a logging.Logger, got {type(logger).__name__}")

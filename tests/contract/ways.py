"""The ways into one queue: in-process sync and async, and HTTP sync and async.

Each is seen through the sync `MQ` protocol, so that a test is written once. All share the
injected clock and leave the database file behind for a look from outside.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import msgspec

import mqlite
from mqlite.api import MQ
from mqlite.clock import ManualClock
from mqlite.embedded.core import Core
from mqlite.engine import doctor
from mqlite.messages import AsyncMessage, Message
from mqlite.model import RenewResult
from mqlite.stores.names import NoNames
from mqlite.stores.sqlite.runner import Runner
from patience import PATIENCE_S, eventually, start

T = TypeVar("T")

WAYS = ("sync", "async", "http", "http_async")
TOKEN = "contract-token"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class World:
    """A queue reached one way, its clock, and its file."""

    def __init__(self, way: str, path: Path, **options: Any) -> None:
        self.way = way
        self.path = path
        self.clock = ManualClock()
        self.options = options
        self._stack = ExitStack()
        self.open()

    def open(self) -> MQ:
        opened = _OPENERS[self.way](str(self.path), clock=self.clock, **self.options)
        self.mq, self.owner, self.connect = self._stack.enter_context(opened)
        self.core: Core = (self.owner.inner if self.way == "async" else self.owner).core
        return self.mq

    def close(self) -> None:
        self._stack.close()

    def reopen(self) -> MQ:
        self.close()
        return self.open()

    def maintain(self) -> None:
        self.owner.maintain()

    def at(self, ms: int) -> datetime:
        """The point in time `ms` from now on the injected clock."""
        return EPOCH + timedelta(milliseconds=self.clock.now() + ms)

    def later(self, ms: int) -> None:
        """Time passes, and everything that is due gets done."""
        self.clock.advance(ms)
        self.maintain()

    def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """What another connection to the file sees."""
        uri = f"{self.path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            return connection.execute(sql, parameters).fetchall()

    def problems(self) -> list[str]:
        """What the doctor finds wrong with the file."""
        with closing(sqlite3.connect(self.path)) as connection:
            return Runner(connection.cursor(), self.clock, NoNames()).run(doctor.examine())

    def waiting(self, queue: str) -> int:
        return self.core.store.waiters.waiting(self._id(queue))

    def until_waiting(self, queue: str, number: int = 1) -> None:
        """Until so many long polls of the queue are asleep."""
        queue_id = self._id(queue)
        eventually(lambda: self.core.store.waiters.waiting(queue_id) == number)

    @contextmanager
    def wakes(self, queue: str) -> Iterator[list[int]]:
        """Collects how many receivers of the queue each commit asks to wake."""
        queue_id = self._id(queue)
        waiters = self.core.store.waiters
        ready, seen = waiters.ready, []

        def watched(id_: int, messages: int) -> None:
            if id_ == queue_id:
                seen.append(messages)
            ready(id_, messages)

        waiters.ready = watched  # type: ignore[method-assign]
        try:
            yield seen
        finally:
            del waiters.ready

    def _id(self, queue: str) -> int:
        sql = "SELECT id FROM mqlite_queues WHERE name = ? AND deleted_at IS NULL"
        return int(self.rows(sql, queue)[0][0])


def together(count: int, work: Callable[[int], T]) -> list[T]:
    """Run `work(0)` to `work(count - 1)` in threads that start at the same moment."""
    barrier = threading.Barrier(count)

    def run(index: int) -> T:
        barrier.wait(PATIENCE_S)
        return work(index)

    futures = [start(run, index) for index in range(count)]
    return [future.result() for future in futures]


Opened = Iterator[tuple[MQ, Any, Callable[[], MQ]]]
"""The queue as tests see it, its in-process owner, and what makes another client."""


@contextmanager
def _sync(path: str, **options: Any) -> Opened:
    with mqlite.open(path, **options) as mq:
        yield mq, mq, lambda: mq


@contextmanager
def _async(path: str, **options: Any) -> Opened:
    with EventLoop() as loop:
        handle = loop.run(mqlite.open_async(path, **options))
        mq: Any = Blocking(handle, loop)
        try:
            yield mq, mq, lambda: mq
        finally:
            mq.close()


@contextmanager
def _http(path: str, **options: Any) -> Opened:
    with ExitStack() as stack:
        owner, url = stack.enter_context(_served(path, options))

        def connect() -> MQ:
            client = mqlite.connect(url, token=TOKEN, clock=options["clock"])
            return stack.enter_context(client)

        yield connect(), owner, connect


@contextmanager
def _http_async(path: str, **options: Any) -> Opened:
    with ExitStack() as stack:
        owner, url = stack.enter_context(_served(path, options))
        loop = stack.enter_context(EventLoop())

        def connect() -> Any:
            client = loop.run(mqlite.connect_async(url, token=TOKEN, clock=options["clock"]))
            mq = Blocking(client, loop)
            stack.callback(mq.close)
            return mq

        yield connect(), owner, connect


@contextmanager
def _served(path: str, options: dict[str, Any]) -> Iterator[tuple[mqlite.Embedded, str]]:
    with mqlite.open(path, **options) as owner, owner.serving(tokens=[TOKEN]) as url:
        yield owner, url


_OPENERS = {"sync": _sync, "async": _async, "http": _http, "http_async": _http_async}


class EventLoop:
    """An event loop in a thread of its own."""

    def __enter__(self) -> EventLoop:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.start(work).result()


class Blocking:
    """An `AsyncMQ` as an `MQ`: every method awaits the one of the same name."""

    def __init__(self, inner: mqlite.AsyncEmbedded | mqlite.AsyncClient, loop: EventLoop) -> None:
        self.inner = inner
        self.loop = loop

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.inner, name)
        if not callable(method):
            return method

        def call(*args: Any, **kwargs: Any) -> Any:
            answer = self.loop.run(method(*args, **kwargs))
            if isinstance(answer, list):
                return [self._handle(item) for item in answer]
            return answer

        return call

    def _handle(self, item: Any) -> Any:
        if not isinstance(item, AsyncMessage):
            return item
        *fields, _ = msgspec.structs.astuple(item)
        held = Held(*fields, self)
        held.inner = item
        return held


class Held(Message):
    """An `AsyncMessage` as a `Message`."""

    inner: AsyncMessage | None = None

    def complete(self) -> None:
        self._await("complete")

    def abandon(self, delay: mqlite.durations.Duration = 0, *, snooze: bool = False) -> None:
        self._await("abandon", delay, snooze=snooze)

    def release(self) -> None:
        self._await("release")

    def reject(self, reason: str = "", description: str = "") -> None:
        self._await("reject", reason, description)

    def defer(self) -> None:
        self._await("defer")

    def renew(self) -> RenewResult:
        return self._await("renew")

    def _await(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return self.mq.loop.run(getattr(self.inner, method)(*args, **kwargs))

"""Single sends that the tasks of an event loop make at the same time, as one request.

What a request costs beyond its messages, here, on the way and in the broker, is then paid
once. Each send still succeeds or fails alone: the broker answers for each message (`results`),
and where it refuses the whole request each message is sent again by itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Sequence
from contextvars import Context
from typing import Any, Final, NamedTuple, Protocol

from mqlite import wire
from mqlite.client.call import Call
from mqlite.client.failures import UnknownField
from mqlite.client.sending import send_together
from mqlite.errors import (
    DedupConflict,
    GroupRequired,
    InvalidArgument,
    MessageTooLarge,
    MqliteError,
    Unsupported,
)
from mqlite.model import OutMessage

MOST: Final = 256
MOST_BYTES: Final = 1024 * 1024
MOST_REQUESTS: Final = 2
"""Under way for one destination: while the broker works on one the next is made."""

_MESSAGE_BYTES: Final = 100
_REFUSED_FOR_ONE: Final = (
    DedupConflict,
    GroupRequired,
    InvalidArgument,
    MessageTooLarge,
    Unsupported,
)
"""What may be due to one of the messages. Everything else would be said to each of them."""


class Destination(NamedTuple):
    """What sends must have in common to be one request: `at` in epoch ms, 0 for now."""

    queue: str
    at: int
    ttl_ms: int


class Single(NamedTuple):
    """One send, its size on the wire, and who waits for its number."""

    message: wire.WireMessage
    size: int
    future: asyncio.Future[int]


class Run(Protocol):
    """Carries out a call."""

    def __call__(self, call: Call[Any], /) -> Awaitable[Any]: ...


class Lane:
    """The sends to one destination that wait for a request."""

    def __init__(self) -> None:
        self.waiting: deque[Single] = deque()
        self.requests = 0
        self.scheduled = False


class Coalescer:
    """Makes requests of sends. Belongs to one event loop."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._lanes: dict[Destination, Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._lacks_results = False

    async def send(self, destination: Destination, message: OutMessage) -> int:
        """Send one message; answers its number.

        A send that is cancelled before its request was made is not sent; after that it may
        be. The others are not disturbed.
        """
        loop = asyncio.get_running_loop()
        single = Single(wire.wire_message(message), _size(message), loop.create_future())
        lane = self._lanes.get(destination)
        if lane is None:
            lane = self._lanes[destination] = Lane()
        lane.waiting.append(single)
        self._schedule(loop, destination, lane)
        return await single.future

    async def settle(self) -> None:
        """Wait for the requests under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _schedule(
        self, loop: asyncio.AbstractEventLoop, destination: Destination, lane: Lane
    ) -> None:
        """Begin a request at the end of the loop's present round, so that everybody who sends
        in it is there."""
        if lane.scheduled or lane.requests >= MOST_REQUESTS or not lane.waiting:
            return
        lane.scheduled = True
        # Not in the context of whoever came first: that is nobody else's.
        loop.call_soon(self._begin, loop, destination, lane, context=Context())

    def _begin(self, loop: asyncio.AbstractEventLoop, destination: Destination, lane: Lane) -> None:
        lane.scheduled = False
        singles = self._take(lane)
        if not singles:
            self._forget_idle(destination, lane)
            return
        lane.requests += 1
        task = loop.create_task(self._send(destination, singles))
        self._tasks.add(task)

        def done(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            lane.requests -= 1
            self._forget_idle(destination, lane)
            self._schedule(loop, destination, lane)

        task.add_done_callback(done)
        self._schedule(loop, destination, lane)

    def _forget_idle(self, destination: Destination, lane: Lane) -> None:
        if not lane.waiting and not lane.requests:
            self._lanes.pop(destination, None)

    def _take(self, lane: Lane) -> list[Single]:
        """The next request's sends, in the order they came, without those whose sender has
        gone."""
        singles: list[Single] = []
        room = MOST_BYTES
        while lane.waiting and len(singles) < MOST:
            single = lane.waiting[0]
            if single.future.done():
                lane.waiting.popleft()
                continue
            if singles and (single.size > room or self._alone(single) or self._alone(singles[0])):
                break
            room -= single.size
            singles.append(lane.waiting.popleft())
        return singles

    def _alone(self, single: Single) -> bool:
        """Without `results` a conflict of ids could not be told from a topic's 0."""
        return self._lacks_results and single.message.message_id is not None

    async def _send(self, destination: Destination, singles: list[Single]) -> None:
        try:
            if len(singles) == 1:
                await self._send_alone(destination, singles[0])
                return
            outcomes = await self._request(destination, singles, results=not self._lacks_results)
        except UnknownField as error:
            self._lacks_results = self._lacks_results or error.field == "results"
            await self._one_by_one(destination, singles)
        except _REFUSED_FOR_ONE:
            await self._one_by_one(destination, singles)
        except BaseException as error:
            for single in singles:
                _fail(single, error)
        else:
            for single, outcome in zip(singles, outcomes, strict=True):
                if isinstance(outcome, MqliteError):
                    _fail(single, outcome)
                elif not single.future.done():
                    single.future.set_result(outcome)

    async def _one_by_one(self, destination: Destination, singles: Sequence[Single]) -> None:
        for single in singles:
            if not single.future.done():
                await self._send_alone(destination, single)

    async def _send_alone(self, destination: Destination, single: Single) -> None:
        try:
            [outcome] = await self._request(destination, [single], results=False)
        except BaseException as error:
            _fail(single, error)
        else:
            if not single.future.done():
                single.future.set_result(outcome)

    async def _request(
        self, destination: Destination, singles: Sequence[Single], *, results: bool
    ) -> list[Any]:
        messages = [single.message for single in singles]
        queue, at, ttl_ms = destination
        answered: list[Any] = await self._run(
            send_together(queue, messages, at, ttl_ms, results=results)
        )
        return answered


def _fail(single: Single, error: BaseException) -> None:
    if not single.future.done():
        single.future.set_exception(error)


def _size(message: OutMessage) -> int:
    """About what the message takes in a request."""
    texts = (
        message.message_id,
        message.group_id,
        message.subject,
        message.correlation_id,
        message.reply_to,
        message.content_type,
    )
    properties = sum(len(key) + len(value) for key, value in message.properties.items())
    return len(message.body) * 4 // 3 + sum(map(len, texts)) + properties + _MESSAGE_BYTES

"""Sends as engine operations: a topic's filters have run before the writer gets them."""

from __future__ import annotations

import asyncio

from mqlite.clock import Clock
from mqlite.engine import send
from mqlite.engine.catalog import Queue, Topic
from mqlite.engine.routing import Routes, route, route_quickly
from mqlite.engine.send import Sent
from mqlite.engine.steps import Operation
from mqlite.model import OutMessage


class Sender:
    """Routes messages, and makes the operations. `target` is what the name was last known to
    stand for; `at` is in epoch milliseconds, 0 for now."""

    def __init__(self, clock: Clock, max_message_bytes: int) -> None:
        self._clock = clock
        self._max_message_bytes = max_message_bytes

    def routes(
        self, messages: list[OutMessage], at: int, target: Queue | Topic | None
    ) -> Routes | None:
        """Where the messages go, if to a topic."""
        if not isinstance(target, Topic):
            return None
        now = self._clock.now()
        return route(target, messages, now, at or now)

    async def routes_async(
        self, messages: list[OutMessage], at: int, target: Queue | Topic | None
    ) -> Routes | None:
        """`routes` for a task; the event loop does not wait for filters that take long."""
        if not isinstance(target, Topic):
            return None
        now = self._clock.now()
        quick = route_quickly(target, messages, now, at or now)
        return quick or await asyncio.to_thread(route, target, messages, now, at or now)

    def operation(
        self, name: str, messages: list[OutMessage], at: int, ttl_ms: int, routes: Routes | None
    ) -> Operation[Sent]:
        """The send; what the routes do not know any more is worked out anew."""
        limit = self._max_message_bytes
        return send.send(name, messages, at=at, ttl_ms=ttl_ms, max_bytes=limit, routes=routes)

"""Sends as engine operations: a topic's filters have run before the writer gets them."""

from __future__ import annotations

import asyncio

from mqlite.clock import Clock
from mqlite.engine import send
from mqlite.engine.catalog import Queue, Topic
from mqlite.engine.routing import Routes, route, route_quickly
from mqlite.engine.steps import Operation
from mqlite.model import OutMessage

Target = Queue | Topic | None
"""What the name that is sent to was last known to stand for."""


class Sender:
    """Makes the operations. `at` is in epoch milliseconds, 0 for now."""

    def __init__(self, clock: Clock, max_message_bytes: int) -> None:
        self._clock = clock
        self._max_message_bytes = max_message_bytes

    def operation(
        self, name: str, messages: list[OutMessage], at: int, ttl_ms: int, target: Target
    ) -> Operation[list[int]]:
        routes = None
        if isinstance(target, Topic):
            now = self._clock.now()
            routes = route(target, messages, now, at or now)
        return self._operation(name, messages, at, ttl_ms, routes)

    async def operation_async(
        self, name: str, messages: list[OutMessage], at: int, ttl_ms: int, target: Target
    ) -> Operation[list[int]]:
        """`operation` for a task; the event loop does not wait for filters that take long."""
        routes = None
        if isinstance(target, Topic):
            now = self._clock.now()
            routes = route_quickly(target, messages, now, at or now)
            if routes is None:
                routes = await asyncio.to_thread(route, target, messages, now, at or now)
        return self._operation(name, messages, at, ttl_ms, routes)

    def _operation(
        self, name: str, messages: list[OutMessage], at: int, ttl_ms: int, routes: Routes | None
    ) -> Operation[list[int]]:
        limit = self._max_message_bytes
        return send.send(name, messages, at=at, ttl_ms=ttl_ms, max_bytes=limit, routes=routes)

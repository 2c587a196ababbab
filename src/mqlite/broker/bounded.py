"""What bounds a connection: deadlines, refusals, and how it ends.

uvicorn sets no deadline for a header or a body, answers malformed HTTP in plain text, in front
of what is still being answered, tells only the newest of several pipelined requests that the
client went away, and resets a connection whose client is still sending.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from mqlite import wire
from mqlite.broker.app import Broker
from mqlite.broker.asgi import JSON, Header
from mqlite.broker.limits import Timeouts
from mqlite.errors import InvalidArgument

_LINGER_SECONDS: Final = 2.0
_LOGGER: Final = logging.getLogger("mqlite.broker")


class BrokerConfig(Config):
    """uvicorn's, with what our connections need to know."""

    broker: Broker
    timeouts: Timeouts
    _defaults: list[Header] | None = None
    _default_lines = b""

    def default_lines(self, state: ServerState) -> bytes:
        """The headers every answer has, as lines; uvicorn makes a new list every second."""
        if state.default_headers is not self._defaults:
            self._defaults = state.default_headers
            self._default_lines = b"".join(b"%s: %s\r\n" % each for each in self._defaults)
        return self._default_lines


class Bounded(HttpToolsProtocol):
    """Belongs to the event loop; the server calls `check` every `Timeouts.sweep`."""

    config: BrokerConfig

    def __init__(
        self,
        config: BrokerConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.access_log = False
        self.logger = _LOGGER
        self.timeouts = config.timeouts
        self.running: RequestResponseCycle | None = None
        self.due = 0.0
        self.reading_header = False
        self.deaf = False
        self.refusal: bytes | None = None
        self.lingering = False
        self.linger_end = 0.0
        self.unsent = 0
        self.stalled_at = 0.0

    def connection_lost(self, exc: Exception | None) -> None:
        if self.running is not None:
            _abandon(self.running)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        super().shutdown()
        if self.running is not None:
            self.running.keep_alive = False
        if self.lingering:
            self.transport.close()

    def check(self, now: float) -> None:
        """End the connection if a deadline has passed."""
        if self.due and now >= self.due:
            self._expire(now)
        # Also after a close, which waits for the client to take what is left.
        before, self.unsent = self.unsent, self.transport.get_write_buffer_size()
        if not before or self.unsent < before:
            self.stalled_at = now
        elif now - self.stalled_at >= self.timeouts.stall:
            self.transport.abort()

    def _expire(self, now: float) -> None:
        if self.lingering:
            self.transport.close()
        elif self.pipeline:
            # We, not the client, hold this request up: what comes before it is not answered.
            self.due = now + self.timeouts.request
        elif self.reading_header:
            self.refuse(408, "the request header did not arrive in time")
        elif self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:
            self.refuse(408, "the request did not arrive in time")

    def refuse(self, status: int, message: str) -> None:
        """Answer in the application's place, after what is still being answered, and close."""
        self.deaf = True
        self.due = 0.0
        self.refusal = self._envelope(status, message)
        cycle = self.cycle
        if cycle is not None and not self.reading_header and cycle.more_body:
            self._drop_unread(cycle)
        self.finish_refusal()

    def _drop_unread(self, cycle: RequestResponseCycle) -> None:
        """The newest request will never be whole, so nothing may be made of it."""
        if self.pipeline and self.pipeline[0][0] is cycle:
            self.pipeline.popleft()
        elif cycle.response_started:
            self.refusal = b""
        else:
            _abandon(cycle)

    def finish_refusal(self) -> None:
        """Send the refusal, if there is one, once nothing else is being answered."""
        busy = self.running
        if busy is not None and not (busy.response_complete or busy.disconnected):
            return
        if self.refusal is not None and not self.transport.is_closing():
            self.transport.write(self.refusal)
            self.refusal = None
            self.close_after_answer(unread=True)

    def close_after_answer(self, *, unread: bool) -> None:
        """Close. With bytes `unread` that would reset the connection, and the client might
        lose the answer: then it is given time to take it, and to close."""
        if not unread or self.transport.is_closing() or not self.transport.can_write_eof():
            self.transport.close()
            return
        self.deaf = self.lingering = True
        self.linger_end = self.loop.time() + self.timeouts.request
        self.go_on_lingering()
        self.transport.write_eof()
        self.flow.resume_reading()

    def go_on_lingering(self) -> None:
        """The client was still sending."""
        if self.lingering:
            self.due = min(self.loop.time() + _LINGER_SECONDS, self.linger_end)

    def _envelope(self, status: int, message: str) -> bytes:
        body = wire.encode(wire.ErrorBody(InvalidArgument.code, message))
        headers = (
            JSON,
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
            *self.config.broker.cors.headers,
        )
        lines = b"".join(b"%s: %s\r\n" % header for header in headers)
        defaults = self.config.default_lines(self.server_state)
        return STATUS_LINE[status] + defaults + lines + b"\r\n" + body


def _abandon(cycle: RequestResponseCycle) -> None:
    """To the application the client has gone."""
    if not cycle.response_complete:
        cycle.disconnected = True
        cycle.message_event.set()

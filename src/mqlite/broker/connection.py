"""One HTTP connection: what uvicorn's lacks.

uvicorn sets no deadline for a header or a body and no limit for a header, answers malformed
HTTP in plain text, in front of what is still being answered, and tells only the newest of
several pipelined requests that the client went away.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import suppress
from typing import Any, Final

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from mqlite import wire
from mqlite.broker.asgi import BODY, JSON, RESPOND, Header
from mqlite.broker.limits import Deadlines
from mqlite.errors import InvalidArgument

MAX_HEADER_BYTES: Final = 1024 * 1024
_LOGGER: Final = logging.getLogger("mqlite.broker")
_PIPELINE: Final = 8
_SMALL_BODY: Final = 64 * 1024  # above it uvicorn has paused reading, which receiving resumes
_UPGRADE: Final = (b"upgrade", b"connection", b"http2-settings")


class BrokerConfig(Config):
    """uvicorn's, with what our connections need to know."""

    deadlines: Deadlines
    common_headers: tuple[Header, ...]


class Connection(HttpToolsProtocol):
    """Belongs to the event loop; the server calls `check` every `Deadlines.sweep`."""

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
        self.deadlines = config.deadlines
        self.running: RequestResponseCycle | None = None
        self.began = 0.0
        self.due = 0.0
        self.reading_header = False
        self.header_bytes = 0
        self.deaf = False
        self.refusal: bytes | None = None
        self.unsent = 0
        self.stalled_at = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.due = self.loop.time() + self.deadlines.header
        peer = transport.get_extra_info("socket")
        if peer is not None:
            # Some answers go out in two writes, and Nagle would hold back the second.
            with suppress(OSError):
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.running is not None:
            _abandon(self.running)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.deaf:
            return
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            self._decline(data[offer.args[0] :])
        except httptools.HttpParserError:
            self.refuse(400, "the request is not valid HTTP")
        if self.reading_header:
            self.header_bytes += len(data)
            if self.header_bytes > MAX_HEADER_BYTES:
                self.refuse(431, f"the request header is larger than {MAX_HEADER_BYTES} bytes")

    def _decline(self, rest: bytes) -> None:
        """Read a request that offers an upgrade again without the offer: the parser takes
        its body for another protocol. (Java's HTTP client offers h2c with every request.)"""
        method = self.parser.get_method()
        if method == b"CONNECT":
            self.refuse(400, "CONNECT is not served")
            return
        kept = [header for header in self.headers if header[0] not in _UPGRADE]
        lines = b"".join(b"%s: %s\r\n" % header for header in kept)
        version = self.parser.get_http_version().encode()
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(b"%s %s HTTP/%s\r\n%s\r\n%s" % (method, self.url, version, lines, rest))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.reading_header = True
        self.header_bytes = 0
        self.began = self.loop.time()
        self.due = self.began + self.deadlines.header

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            return  # it is read again, see _decline
        super().on_headers_complete()
        self.reading_header = False
        self.due = self.began + self.deadlines.request
        self.scope[RESPOND] = self._respond  # type: ignore[typeddict-unknown-key]
        self.scope[BODY] = self._whole_body  # type: ignore[typeddict-unknown-key]
        if 0 < len(self.pipeline) < _PIPELINE:
            # While reading is paused nobody notices that the client has gone.
            self.flow.resume_reading()

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        super().on_message_complete()
        self.due = 0.0

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self.running = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.refusal is not None:
            self._finish_refusal()

    def _whole_body(self) -> bytes | None:
        """`Whole` for the running request: spares it the wait for an event that is set."""
        cycle = self.running
        if cycle is None or cycle.more_body or cycle.disconnected or len(cycle.body) > _SMALL_BODY:
            return None
        body, cycle.body = bytes(cycle.body), bytearray()
        cycle.message_event.clear()
        return body

    def _respond(self, status: int, headers: list[Header], body: bytes) -> bool:
        """`Respond` for the running request: what uvicorn does in two events, without
        looking at each header for what ours never hold."""
        cycle = self.running
        if cycle is None or cycle.disconnected:
            return True
        if self.flow.write_paused or not cycle.keep_alive or cycle.scope["method"] == "HEAD":
            return False
        lines = [STATUS_LINE[status]]
        for name, value in (*self.server_state.default_headers, *headers):
            lines += (name, b": ", value, b"\r\n")
        lines += (b"\r\n", body)
        self.transport.write(b"".join(lines))
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.message_event.set()
        cycle.on_response()
        return True

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unsent = self.transport.get_write_buffer_size()
        self.stalled_at = self.loop.time()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.unsent = 0

    def shutdown(self) -> None:
        super().shutdown()
        if self.running is not None:
            self.running.keep_alive = False

    def check(self, now: float) -> None:
        """End the connection if a deadline has passed."""
        if self.due and now >= self.due:
            self._expire(now)
        if self.unsent:
            left = self.transport.get_write_buffer_size()
            if left < self.unsent:
                self.unsent, self.stalled_at = left, now
            elif now - self.stalled_at >= self.deadlines.stall:
                self.transport.abort()

    def _expire(self, now: float) -> None:
        if self.pipeline:
            # We, not the client, hold this request up: what comes before it is not answered.
            self.due = now + self.deadlines.request
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
        self._finish_refusal()

    def _drop_unread(self, cycle: RequestResponseCycle) -> None:
        """The newest request will never be whole, so nothing may be made of it."""
        if self.pipeline and self.pipeline[0][0] is cycle:
            self.pipeline.popleft()
        elif cycle.response_started:
            self.refusal = b""
        else:
            _abandon(cycle)

    def _finish_refusal(self) -> None:
        """Send it, once nothing else is being answered."""
        busy = self.running
        if busy is not None and not (busy.response_complete or busy.disconnected):
            return
        if self.refusal is not None and not self.transport.is_closing():
            self.transport.write(self.refusal)
            self.transport.close()

    def _envelope(self, status: int, message: str) -> bytes:
        body = wire.encode(wire.ErrorBody(InvalidArgument.code, message))
        headers = (
            *self.server_state.default_headers,
            JSON,
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
            *self.config.common_headers,
        )
        lines = b"".join(b"%s: %s\r\n" % header for header in headers)
        return STATUS_LINE[status] + lines + b"\r\n" + body


def _abandon(cycle: RequestResponseCycle) -> None:
    """To the application the client has gone."""
    if not cycle.response_complete:
        cycle.disconnected = True
        cycle.message_event.set()

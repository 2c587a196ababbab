"""One HTTP connection: how requests are read and answered.

uvicorn has no limit for a header, makes a task for what needs none, and reads nothing while
a request waits behind another.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any, Final

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from mqlite.broker.asgi import BODY, RESPOND, Header
from mqlite.broker.bounded import Bounded, BrokerConfig
from mqlite.broker.direct import PATH, begin

MAX_HEADER_BYTES: Final = 1024 * 1024
_PIPELINE: Final = 8
_DIRECT_URL: Final = PATH.encode()
_SMALL_BODY: Final = 64 * 1024  # above it uvicorn has paused reading, which receiving resumes
_UPGRADE: Final = (b"upgrade", b"connection", b"http2-settings")


class Connection(Bounded):
    """Belongs to the event loop; the server calls `check` every `Timeouts.sweep`."""

    def __init__(
        self,
        config: BrokerConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.waiting: ASGI3Application | None = None
        self.direct_body: bytearray | None = None
        self.direct_cycle: RequestResponseCycle | None = None
        self.began = 0.0
        self.header_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.due = self.loop.time() + self.timeouts.header
        peer = transport.get_extra_info("socket")
        if peer is not None:
            # Some answers go out in two writes, and Nagle would hold back the second.
            with suppress(OSError):
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        if self.deaf:
            self.go_on_lingering()
            return
        try:
            self._read(data)
        except httptools.HttpParserError:
            self._open_cycle_after_all()
            self.refuse(400, "the request is not valid HTTP")
        self._open_cycle_after_all()
        self._start()
        self.header_bytes += len(data)
        if self.header_bytes > MAX_HEADER_BYTES:
            self.refuse(431, f"a header or trailer is larger than {MAX_HEADER_BYTES} bytes")

    def _read(self, data: bytes) -> None:
        rest: bytes | memoryview = data
        while rest and not self.deaf:
            try:
                self.parser.feed_data(rest)
            except httptools.HttpParserUpgrade as offer:
                self._decline()
                rest = memoryview(rest)[offer.args[0] :]
            else:
                return

    def _decline(self) -> None:
        """Read the header of a request that offers an upgrade again, without the offer: the
        parser takes its body for another protocol. (Java's HTTP client offers h2c with every
        request.)"""
        method = self.parser.get_method()
        if method == b"CONNECT":
            self.refuse(400, "CONNECT is not served")
            return
        kept = [header for header in self.headers if header[0] not in _UPGRADE]
        lines = b"".join(b"%s: %s\r\n" % header for header in kept)
        version = self.parser.get_http_version().encode()
        self.parser = httptools.HttpRequestParser(self)
        self.parser.feed_data(b"%s %s HTTP/%s\r\n%s\r\n" % (method, self.url, version, lines))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.reading_header = True
        self.header_bytes = 0
        self.began = self.loop.time()
        self.due = self.began + self.timeouts.header

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            return  # it is read again, see _decline
        self.reading_header = False
        self.due = self.began + self.timeouts.request
        alone = self.cycle is None or self.cycle.response_complete
        if alone and self.url == _DIRECT_URL and not self.expect_100_continue:
            self.direct_body = bytearray()
        else:
            self._open_cycle()
        self.headers = []  # for a trailer, which must not say who sends what it follows

    def _open_cycle(self) -> None:
        """uvicorn's part of every request that is not answered directly."""
        super().on_headers_complete()
        if self.config.broker.stopping:  # the connection may have come too late for `shutdown`
            self.cycle.keep_alive = False
        self.scope[RESPOND] = self._respond  # type: ignore[typeddict-unknown-key]
        self.scope[BODY] = self._whole_body  # type: ignore[typeddict-unknown-key]
        if 0 < len(self.pipeline) < _PIPELINE:
            # While reading is paused nobody notices that the client has gone.
            self.flow.resume_reading()

    def _open_cycle_after_all(self) -> None:
        """Open the cycle of a request that was thought to be answered directly."""
        body, self.direct_body = self.direct_body, None
        if body is not None:
            self._open_cycle()
            if body:
                super().on_body(bytes(body))

    def on_body(self, body: bytes) -> None:
        self.header_bytes = 0  # from here on a trailer's
        gathered = self.direct_body
        if gathered is None:
            super().on_body(body)
        else:
            gathered += body
            if len(gathered) > _SMALL_BODY:
                self._open_cycle_after_all()

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        direct_body = self.direct_body
        if direct_body is not None and self._begin_directly(direct_body):
            self.direct_body = None
            self.due = 0.0
            return
        self._open_cycle_after_all()
        super().on_message_complete()
        answered = self.cycle.response_complete
        self.due = self.loop.time() + self.timeouts.idle if answered else 0.0
        self._start(directly=direct_body is None)  # else it has been tried

    def _begin_directly(self, body: bytearray) -> bool:
        """Begin a request without a cycle of its own: making one, and its scope, is a tenth
        of the work (measured). False where nothing has happened."""
        scope: Any = self.scope
        scope["method"] = self.parser.get_method().decode()
        scope["path"] = PATH
        scope[RESPOND] = self._respond
        cycle = self.direct_cycle
        if cycle is None:
            cycle = self.direct_cycle = self._new_direct_cycle()
        receive: Any = cycle.receive
        if self.flow.write_paused or not begin(self.config.broker, scope, receive, body):
            return False
        cycle.scope = scope
        cycle.keep_alive = (
            self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive()
        )
        cycle.response_started = cycle.response_complete = False
        self.cycle = self.running = cycle
        return True

    def _new_direct_cycle(self) -> RequestResponseCycle:
        """For all requests of the connection that are begun without one: it has no more than
        one of them at a time."""
        cycle = RequestResponseCycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=[],
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=True,
            on_response=self.on_response_complete,
        )
        cycle.more_body = False
        return cycle

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Not yet: what is here of the request may turn out to be all of it."""
        self.running = cycle
        self.waiting = app

    def _start(self, *, directly: bool = True) -> None:
        """Start the request whose turn it is, if that has not happened."""
        cycle, app = self.running, self.waiting
        if cycle is None or app is None:
            return
        self.waiting = None
        scope: Any = cycle.scope
        receive: Any = cycle.receive
        whole = not (cycle.more_body or cycle.disconnected or len(cycle.body) > _SMALL_BODY)
        directly = directly and whole and not self.flow.write_paused
        if not (directly and begin(self.config.broker, scope, receive, cycle.body)):
            super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """uvicorn's, with the sweep's deadline in place of a timer for every request."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            self._start()
        elif not self.due:  # else the next request is being read already
            self.due = self.loop.time() + self.timeouts.idle
        self.finish_refusal()

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
        if self.flow.write_paused or cycle.scope["method"] == "HEAD":
            return False
        lines = [STATUS_LINE[status], self.config.default_lines(self.server_state)]
        for name, value in headers:
            lines += (name, b": ", value, b"\r\n")
        if not cycle.keep_alive:
            lines.append(b"connection: close\r\n")
        lines += (b"\r\n", body)
        self.transport.write(b"".join(lines))
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.message_event.set()
        if not cycle.keep_alive:
            self.close_after_answer(unread=cycle.more_body)
        cycle.on_response()
        return True

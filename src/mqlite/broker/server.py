"""The HTTP server: uvicorn, made to stop the way a broker must."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
from collections.abc import Callable
from types import FrameType
from typing import Final

import uvicorn

from mqlite.broker.app import LOGGER, Broker
from mqlite.broker.bounded import BrokerConfig
from mqlite.broker.connection import Connection
from mqlite.broker.limits import Timeouts
from mqlite.errors import InvalidArgument

_BACKLOG: Final = 2048


class BrokerServer(uvicorn.Server):
    """Serves a broker until a signal arrives, the queue closes, or `should_exit` is set.

    Then it accepts nothing new, ends the long polls, and finishes what was admitted. A
    second signal ends it at once. A signal is not raised again afterwards: a stop that was
    asked for is a success. The log tells when it has started, begins to stop, and why, and has
    stopped.
    """

    def __init__(
        self, broker: Broker, timeouts: Timeouts, ready: Callable[[], None] | None = None
    ) -> None:
        self.broker = broker
        self._timeouts = timeouts
        self._ready = ready
        self._sweeper: asyncio.Task[None] | None = None
        self._signal: signal.Signals | None = None
        super().__init__(_config(broker, timeouts))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._sweeper = asyncio.create_task(self._sweep())
        LOGGER.info("broker started on %s", ", ".join(map(address_of, sockets or ())))
        if self._ready is not None:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        LOGGER.info("broker stopping: %s", self._reason())
        self.broker.drain()
        try:
            await super().shutdown(sockets=sockets)
        finally:
            if self._sweeper is not None:
                self._sweeper.cancel()
            # What is cut off now must not be answered as a failure of the application.
            self._abort_all()
            self.broker.log.flush()
        LOGGER.info("broker stopped")

    def _reason(self) -> str:
        if self._signal is not None:
            return self._signal.name
        return "the queue is closed" if self.broker.closed else "asked to by the program"

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Not logged here: what was interrupted may hold the log.
        self._signal = self._signal or signal.Signals(sig)
        self.force_exit = self.should_exit
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self.broker.closed

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._timeouts.sweep)
            now = loop.time()
            if self.force_exit:
                self._abort_all()
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.check(now)

    def _abort_all(self) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def _config(broker: Broker, timeouts: Timeouts) -> BrokerConfig:
    config = BrokerConfig(
        broker,
        http=Connection,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=timeouts.grace,  # type: ignore[arg-type]  # fractions too
        backlog=_BACKLOG,
    )
    config.broker = broker
    config.timeouts = timeouts
    return config


def bind(addr: str) -> socket.socket:
    """Listen on `host:port`, `[v6]:port` or `:port` (every interface); port 0 picks one.

    Raises InvalidArgument for text that is no address, OSError saying which address could
    not be taken and why.
    """
    host, port = _parse(addr)
    try:
        if not host and socket.has_dualstack_ipv6():
            return socket.create_server(
                ("", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True
            )
        family, target = _resolve(host, port)
        return socket.create_server(target, family=family, backlog=_BACKLOG)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise OSError(problem.errno, f"cannot listen on {addr}: {reason}") from None


def _parse(addr: str) -> tuple[str, int]:
    host, separator, port = addr.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        separator = ""
    if not separator or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise InvalidArgument(f"addr must be host:port or :port, got {addr!r}")
    return host, int(port)


def _resolve(host: str, port: int) -> tuple[int, tuple[str, int]]:
    """The first address of the name, version 4 before version 6."""
    if not host:
        return socket.AF_INET, ("", port)
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    found.sort(key=lambda info: info[0] != socket.AF_INET)
    family, _, _, _, target = found[0]
    return family, (str(target[0]), port)


def is_loopback(listener: socket.socket) -> bool:
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def url_of(listener: socket.socket) -> str:
    """Where a client on this machine reaches it."""
    host, port = listener.getsockname()[:2]
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        return f"http://127.0.0.1:{port}"
    return f"http://{address_of(listener)}"

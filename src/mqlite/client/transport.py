"""Requests over kept-alive HTTP connections, one at a time on each."""

from __future__ import annotations

import selectors
import socket
import threading
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from mqlite import __version__
from mqlite.client.failures import failure
from mqlite.endpoint import parse_endpoint, without_credentials
from mqlite.errors import Closed, InvalidArgument, MqliteError, OutcomeUnknown, Unavailable

CONNECT_TIMEOUT: Final = 10.0


class Transport:
    """Posts requests to one broker. Safe to share between threads: each call has a
    connection to itself, and idle ones are used again."""

    def __init__(self, endpoint: str, token: str) -> None:
        """Raises InvalidArgument for an endpoint or a token that cannot be used."""
        read = parse_endpoint(endpoint)
        self.base_url = without_credentials(read.base_url)
        if self.base_url != read.base_url:
            raise InvalidArgument("an http endpoint holds no user name; give the token apart")
        parts = urlsplit(self.base_url)
        if parts.query or parts.fragment:
            raise InvalidArgument(f"{self.base_url} must not have a query or a fragment")
        self._address = parts.netloc
        self._secure = parts.scheme == "https"
        self._prefix = parts.path
        self._headers = _headers(token or read.token)
        self._idle: list[HTTPConnection] = []
        self._polling: set[HTTPConnection] = set()
        self._closed = False
        self._lock = threading.Lock()

    def post(self, path: str, body: bytes, *, writes: bool, polls: bool = False) -> bytes:
        """The body of a successful answer. `polls` marks a request that `close` breaks off.

        Raises what the broker answered, Unavailable if the request cannot have reached it,
        and, where it may have and `writes`, OutcomeUnknown. Nothing is sent twice.
        """
        connection = self._take(polls)
        try:
            self._send(connection, path, body)
            response, answer = self._answer(connection, writes)
        except BaseException:
            self._drop(connection)
            raise
        self._give_back(connection)
        if response.status != 200:
            raise failure(response.status, response.headers, answer)
        return answer

    def close(self) -> None:
        """Refuse new requests and break off long polls; what else is under way ends by
        itself."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            for connection in self._polling:
                _shut(connection)
        for connection in idle:
            connection.close()

    def _take(self, polls: bool) -> HTTPConnection:
        with self._lock:
            if self._closed:
                raise Closed("this client is closed")
            connection = None
            while self._idle and connection is None:
                connection = _usable(self._idle.pop())
            if connection is None:
                kind = HTTPSConnection if self._secure else HTTPConnection
                connection = kind(self._address, timeout=CONNECT_TIMEOUT)
            if polls:
                self._polling.add(connection)
            return connection

    def _send(self, connection: HTTPConnection, path: str, body: bytes) -> None:
        """Hand over the whole request. Until all of it is handed over the broker cannot act
        on it, so a kept-alive connection that breaks here is replaced, once."""
        reused = connection.sock is not None
        try:
            self._request(connection, path, body)
        except (OSError, HTTPException, UnicodeError) as error:
            connection.close()
            if not reused or self._closed:
                raise self._unreachable(error) from None
            self._send(connection, path, body)

    def _request(self, connection: HTTPConnection, path: str, body: bytes) -> None:
        if connection.sock is None:
            connection.connect()
            assert connection.sock is not None
            connection.sock.settimeout(None)
        connection.request("POST", self._prefix + path, body, self._headers)

    def _answer(self, connection: HTTPConnection, writes: bool) -> tuple[HTTPResponse, bytes]:
        try:
            response = connection.getresponse()
            body = response.read()
        except (OSError, HTTPException) as error:
            broken_off = self._closed and connection in self._polling
            if writes and not broken_off:
                raise OutcomeUnknown(
                    f"the connection to {self.base_url} broke before the answer came:"
                    " the operation may or may not have been done"
                ) from None
            raise self._unreachable(error) from None
        return response, body

    def _unreachable(self, error: Exception) -> MqliteError:
        if self._closed:
            return Closed("this client is closed")
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        return Unavailable(
            f"cannot reach the broker at {self.base_url}: {reason}", reason="unreachable"
        )

    def _give_back(self, connection: HTTPConnection) -> None:
        with self._lock:
            self._polling.discard(connection)
            if connection.sock is not None and not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _drop(self, connection: HTTPConnection) -> None:
        with self._lock:
            self._polling.discard(connection)
        connection.close()


def _headers(token: str) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "User-Agent": f"mqlite-python/{__version__}"}
    if token:
        if not (token.isascii() and token.isprintable()):
            raise InvalidArgument("the token holds characters no HTTP header can carry")
        headers["Authorization"] = f"Bearer {token}"
    return headers


def _usable(connection: HTTPConnection) -> HTTPConnection | None:
    """None for an idle connection the broker has closed: only then is there something to
    read from it."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection.sock, selectors.EVENT_READ)
        if not selector.select(0):
            return connection
    connection.close()
    return None


def _shut(connection: HTTPConnection) -> None:
    if connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)

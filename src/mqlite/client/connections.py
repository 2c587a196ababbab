"""Attempts over kept-alive HTTP connections of the standard library, one at a time on each."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Final, NamedTuple
from weakref import WeakSet

from mqlite.client.call import Answer, Lost, Outcome, Unreached, received
from mqlite.client.discipline import Attempt, closed
from mqlite.client.target import IDLE_SECONDS, Target
from mqlite.errors import Closed

_ONE_WRITE: Final = 64 * 1024
_TOO_LARGE: Final = 413


class Connections:
    """Carries attempts to one broker. Safe to share between threads: each attempt has a
    connection to itself, and idle ones are used again. A forked child makes its own."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._head = _head(target)
        self._context = target.ssl_context() if target.secure else None
        self._renew(closed=False)
        _all.add(self)

    def _renew(self, closed: bool) -> None:
        self._closed = threading.Event()
        if closed:
            self._closed.set()
        self._idle: list[_Idle] = []
        self._running: dict[HTTPConnection, _Running] = {}
        self._changed = threading.Condition()

    def attempt(self, attempt: Attempt) -> Outcome:
        """What came of it. Raises Closed for a new one after `close`, and for a long poll
        that `close` broke off."""
        connection = self._take(attempt.polls)
        outcome: Outcome | None = None
        try:
            outcome = self._send(connection, attempt) or _answer(connection)
        finally:
            self._give_back(connection, usable=isinstance(outcome, Answer))
        if attempt.polls and self._closed.is_set() and not isinstance(outcome, Answer):
            raise closed()
        return outcome

    def pause(self, seconds: float) -> Closed | None:
        """Sleep; Closed if the client was closed meanwhile."""
        return closed() if self._closed.wait(seconds) else None

    def close(self) -> None:
        """Refuse new attempts, break off long polls, and wait for what else is under way in
        other threads."""
        with self._changed:
            self._closed.set()
            idle, self._idle = self._idle, []
            for connection, running in self._running.items():
                if running.polls:
                    _shut(connection)
        for connection, _ in idle:
            connection.close()
        here = threading.get_ident()
        with self._changed:
            self._changed.wait_for(lambda: all(r.thread == here for r in self._running.values()))

    def forget(self) -> None:
        """Let go of the connections of the process that this one was forked from."""
        connections = [connection for connection, _ in self._idle] + list(self._running)
        self._renew(self._closed.is_set())
        for connection in connections:
            connection.close()

    def _take(self, polls: bool) -> HTTPConnection:
        with self._changed:
            if self._closed.is_set():
                raise closed()
            connection = None
            while self._idle and connection is None:
                connection = _usable(*self._idle.pop())
            if connection is None:
                connection = self._new()
            self._running[connection] = _Running(threading.get_ident(), polls)
            return connection

    def _new(self) -> HTTPConnection:
        address, timeout = self._target.address, self._target.connect_seconds
        if self._context is not None:
            return HTTPSConnection(address, timeout=timeout, context=self._context)
        return HTTPConnection(address, timeout=timeout)

    def _send(self, connection: HTTPConnection, attempt: Attempt) -> Outcome | None:
        """Hand over the whole request; None if that was done. Until all of it is handed over
        the broker cannot act on it."""
        try:
            self._request(connection, attempt)
        except (OSError, HTTPException) as error:
            return _early_answer(connection, error) or Unreached(_reason(error))
        return None

    def _request(self, connection: HTTPConnection, attempt: Attempt) -> None:
        if connection.sock is None:
            connection.timeout = self._target.connect_seconds
            connection.connect()
        assert connection.sock is not None
        if attempt.polls and self._closed.is_set():
            raise closed()  # `close` found no connection yet that it could have broken off
        connection.sock.settimeout(attempt.timeout)
        head = self._head % (attempt.path.encode(), len(attempt.body))
        if len(attempt.body) <= _ONE_WRITE:
            connection.sock.sendall(head + attempt.body)
        else:
            connection.sock.sendall(head)
            connection.sock.sendall(attempt.body)

    def _give_back(self, connection: HTTPConnection, *, usable: bool) -> None:
        with self._changed:
            del self._running[connection]
            keep = usable and connection.sock is not None and not self._closed.is_set()
            if keep:
                self._idle.append(_Idle(connection, time.monotonic()))
            if self._closed.is_set():
                self._changed.notify_all()
        if not keep:
            connection.close()


class _Running(NamedTuple):
    thread: int
    polls: bool


class _Idle(NamedTuple):
    connection: HTTPConnection
    since: float


def _head(target: Target) -> bytes:
    """A request up to its body, but for the operation's path and the body's length.

    `http.client` would send the head by itself, and the broker would be woken twice.
    """
    lines = [f"POST {target.prefix}".replace("%", "%%") + "%b HTTP/1.1"]
    headers = {"Host": target.address} | target.headers
    lines += [f"{name}: {value}".replace("%", "%%") for name, value in headers.items()]
    return "\r\n".join([*lines, "Content-Length: %d", "", ""]).encode()


def _answer(connection: HTTPConnection) -> Answer | Lost:
    try:
        assert connection.sock is not None
        response = HTTPResponse(connection.sock, method="POST")
        try:
            response.begin()
            answer = received(response.status, response.headers, response.read())
        finally:
            response.close()
        if response.will_close:
            connection.close()
        return answer
    except TimeoutError:
        return Lost("no answer came in time")
    except (OSError, HTTPException, ValueError, OverflowError, MemoryError) as error:
        # The last two where the answer claims a length that no memory has.
        return Lost(f"the connection broke ({_reason(error)})")


def _early_answer(connection: HTTPConnection, error: Exception) -> Answer | None:
    """The refusal of a request that is too large, before all of it was sent: what stands before
    a broker may answer like that."""
    if not isinstance(error, BrokenPipeError | ConnectionResetError) or connection.sock is None:
        return None
    answer = _answer(connection)
    return answer if isinstance(answer, Answer) and answer.status == _TOO_LARGE else None


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


def _usable(connection: HTTPConnection, since: float) -> HTTPConnection | None:
    """None for an idle connection that has been idle for long, or that the broker has closed:
    only then is there something to read from it."""
    if time.monotonic() - since < IDLE_SECONDS and not _readable(connection.sock):
        return connection
    connection.close()
    return None


def _readable(sock: socket.socket) -> bool:
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([sock], [], [], 0)[0])


def _shut(connection: HTTPConnection) -> None:
    if connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)


_all: WeakSet[Connections] = WeakSet()


def _forget_all() -> None:
    for connections in list(_all):
        connections.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)

"""Kept-alive connections: used again, replaced when stale, nothing sent twice."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from mqlite.client import Client
from mqlite.errors import OutcomeUnknown, Unavailable

OK = b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"ok":true}'
STATS = b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{"queue":"q"}'
Script = Callable[["Peer"], None]


class Peer:
    """The broker's end of the connections, driven by the test."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.requests = 0
        self.connections: list[socket.socket] = []

    def accept(self) -> socket.socket:
        connection, _ = self._listener.accept()
        connection.settimeout(30)
        self.connections.append(connection)
        return connection

    def read(self, connection: socket.socket) -> None:
        """One whole request."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        [length] = [
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        ]
        while len(body) < length:
            body += connection.recv(65536)
        self.requests += 1


@contextmanager
def scripted(script: Script) -> Iterator[tuple[Client, Peer, threading.Thread]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        peer = Peer(listener)
        thread = threading.Thread(target=script, args=(peer,))
        thread.start()
        with Client(f"http://127.0.0.1:{listener.getsockname()[1]}") as client:
            yield client, peer, thread
            thread.join(30)
        for connection in peer.connections:
            connection.close()
        assert not thread.is_alive()


def test_a_connection_is_used_again() -> None:
    def script(peer: Peer) -> None:
        connection = peer.accept()
        for _ in range(3):
            peer.read(connection)
            connection.sendall(OK)

    with scripted(script) as (client, peer, _):
        for seq in range(1, 4):
            client.complete("q", seq, "t")
    assert (len(peer.connections), peer.requests) == (1, 3)


def test_an_idle_connection_that_the_broker_closed_is_replaced() -> None:
    closed = threading.Event()

    def script(peer: Peer) -> None:
        connection = peer.accept()
        peer.read(connection)
        connection.sendall(OK)
        connection.close()
        closed.set()
        connection = peer.accept()
        peer.read(connection)
        connection.sendall(OK)

    with scripted(script) as (client, peer, _):
        client.complete("q", 1, "t")
        assert closed.wait(30)
        client.complete("q", 2, "t")
    assert peer.requests == 2


def test_a_write_whose_answer_is_lost_is_not_sent_again() -> None:
    def script(peer: Peer) -> None:
        connection = peer.accept()
        peer.read(connection)
        connection.close()

    with scripted(script) as (client, peer, _), pytest.raises(OutcomeUnknown):
        client.complete("q", 1, "t")
    assert peer.requests == 1


def test_a_read_whose_answer_is_lost_is_unavailable() -> None:
    def script(peer: Peer) -> None:
        connection = peer.accept()
        peer.read(connection)
        connection.sendall(STATS[:-3])
        connection.close()

    with scripted(script) as (client, peer, _), pytest.raises(Unavailable) as caught:
        client.stats("q")
    assert caught.value.reason == "unreachable"
    assert peer.requests == 1


def test_an_answer_that_closes_the_connection() -> None:
    def script(peer: Peer) -> None:
        for _ in range(2):
            connection = peer.accept()
            peer.read(connection)
            connection.sendall(STATS.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n"))
            connection.close()

    with scripted(script) as (client, peer, _):
        client.stats("q")
        client.stats("q")
    assert (len(peer.connections), peer.requests) == (2, 2)


def test_threads_have_a_connection_each() -> None:
    both = threading.Barrier(2)

    def script(peer: Peer) -> None:
        connections = [peer.accept(), peer.accept()]
        for connection in connections:
            peer.read(connection)
        for connection in connections:
            connection.sendall(STATS)

    with scripted(script) as (client, peer, _):

        def call() -> None:
            both.wait(30)
            client.stats("q")

        threads = [threading.Thread(target=call) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert (len(peer.connections), peer.requests) == (2, 2)

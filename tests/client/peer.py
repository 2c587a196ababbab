"""The broker's end of the connections, byte by byte, as a test scripts it."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 30.0


def answer(body: Any, status: str = "200 OK", **headers: str) -> bytes:
    """One HTTP answer; `body` is JSON unless it is bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


OK = answer({"ok": True})
STATS = answer({"queue": "q"})
SENT = answer({"seq_numbers": [1]})
NOTHING = answer({"messages": []})


class Peer:
    """Connections as the broker sees them."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.connections: list[socket.socket] = []

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]

    def accept(self) -> socket.socket:
        connection, _ = self._listener.accept()
        connection.settimeout(PATIENCE)
        self.connections.append(connection)
        return connection

    def read(self, connection: socket.socket) -> None:
        """One whole request."""
        data = bytearray()
        while b"\r\n\r\n" not in data:
            data += _more(connection)
        head, _, body = data.partition(b"\r\n\r\n")
        [length] = [
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        ]
        while len(body) < length:
            body += _more(connection)
        self.heads.append(bytes(head))
        self.bodies.append(bytes(body))

    def serve(self, *answers: bytes) -> socket.socket:
        """A connection with a request for each answer."""
        connection = self.accept()
        for one in answers:
            self.read(connection)
            connection.sendall(one)
        return connection

    def cut(self, *, after: bytes = b"") -> None:
        """A connection that ends within the answer to its first request."""
        self.serve(after).close()

    def hang(self) -> None:
        """A connection whose request gets no answer; it ends when the client ends it."""
        connection = self.accept()
        self.read(connection)
        try:
            assert connection.recv(1) == b""
        except ConnectionError:
            return


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise AssertionError("the client went away")
    return data


def reset(connection: socket.socket) -> None:
    """End the connection so that the other side cannot go on."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@contextmanager
def scripted(script: Callable[[Peer], object]) -> Iterator[Peer]:
    """Runs the script beside the block, and fails if it did not get to its end."""
    failure: list[BaseException] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        peer = Peer(listener)

        def run() -> None:
            try:
                script(peer)
            except BaseException as error:
                failure.append(error)
            finally:
                listener.close()  # what comes beyond the script is refused

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield peer
        finally:
            thread.join(PATIENCE)
            for connection in peer.connections:
                connection.close()
        assert not thread.is_alive()
        if failure:
            raise failure[0]

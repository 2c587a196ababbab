"""Starting broker processes, killing them, and standing in the way of their answers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from client.peer import PATIENCE

TOKEN = "fault-token"


class BrokerProcess:
    """`mqlite` serving a file, always at the same address."""

    def __init__(self, database: Path, *, shift_ms: int = 0) -> None:
        self._database = database
        self._shift_ms = shift_ms
        self._address = "127.0.0.1:0"
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self) -> None:
        script = str(Path(__file__).with_name("broker.py"))
        self._process = subprocess.Popen(
            [
                sys.executable,
                script,
                str(self._database),
                self._address,
                str(self._shift_ms),
            ],
            env=os.environ | {"MQLITE_TOKENS": TOKEN},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        assert self.url, "the broker did not start"
        self._address = urlsplit(self.url).netloc

    def kill(self) -> None:
        """As the power goes."""
        process = self._process
        assert process is not None
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
        self._process = None

    def freeze(self) -> None:
        """It accepts connections and answers nothing any more."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def restart(self) -> None:
        self.kill()
        self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self.kill()


class Proxy:
    """Stands before a broker and lets everything pass, until it is told to misbehave.

    `cut` is how much of the next answer gets through before the connection ends; `hold` keeps
    the next answer back until the event is set.
    """

    def __init__(self, listener: socket.socket, broker_url: str) -> None:
        parts = urlsplit(broker_url)
        self._broker = (parts.hostname or "", parts.port or 0)
        self._listener = listener
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.cut: int | None = None
        self.hold: threading.Event | None = None
        self._clients: list[socket.socket] = []

    def run(self) -> None:
        threads = []
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                break
            self._clients.append(client)
            threads.append(threading.Thread(target=self._connection, args=(client,)))
            threads[-1].start()
        for thread in threads:
            thread.join(PATIENCE)

    def end(self) -> None:
        """Accept nothing more, and end what is there."""
        for connection in (self._listener, *self._clients):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _connection(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._broker) as broker, suppress(OSError):
            while request := _message(client):
                broker.sendall(request)
                answer = _message(broker)
                cut, self.cut = self.cut, None
                hold, self.hold = self.hold, None
                if hold is not None:
                    hold.wait(PATIENCE)
                if cut is not None:
                    client.sendall(answer[:cut])
                    return
                client.sendall(answer)


def _message(connection: socket.socket) -> bytes:
    """One HTTP request or answer; empty at the end."""
    data = bytearray()
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    [length] = [
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length")
    ]
    while len(body) < length:
        more = connection.recv(65536)
        body += more
        data += more
    return bytes(data)


@contextmanager
def proxy(broker_url: str) -> Iterator[Proxy]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        between = Proxy(listener, broker_url)
        thread = threading.Thread(target=between.run)
        thread.start()
        try:
            yield between
        finally:
            between.end()
            thread.join(PATIENCE)
        assert not thread.is_alive()

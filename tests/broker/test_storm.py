"""What a storm of broken and refused requests leaves behind: nothing."""

from __future__ import annotations

import json
import random
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from broker.keying import create
from broker.support import TOKEN, TOKENS, Api, connect, exchange, post_bytes
from mqlite.broker import serve
from mqlite.broker.app import Broker
from mqlite.broker.limits import Limits
from mqlite.broker.requestlog import RequestLog
from mqlite.embedded import Embedded
from patience import eventually

THREADS = 8
CONNECTIONS = 25
LIMITS = Limits(requests=12, polls=4, pending_bytes=200_000)
GOOD = {"queue": "q", "messages": [{"body": "YQ=="}]}
CHUNKED = "Transfer-Encoding: chunked"
RESET = struct.pack("ii", 1, 0)


def bodies() -> dict[str, list[bytes]]:
    """Requests by operation: good ones, and some for every reason to refuse one."""
    sends: list[object] = [
        GOOD,
        {"queue": "t", "messages": [{}]},
        {"queue": "q", "messages": [{}, {}]},
        {"queue": "q", "messages": [{}], "results": True},
        {"queue": "q", "messages": [{"body": "A" * 40_000}]},
        {"queue": "q", "messages": [{"body": "A" * 100_000}]},
        {"queue": "q", "messages": [{"priority": 5000}]},
        {"queue": "q", "messages": [{"body": "!"}]},
        {"queue": "q", "messages": [{}], "scheduled_enqueue_time_ms": 1},
        {"queue": "grouped", "messages": [{}]},
        {"queue": "once", "messages": [{"message_id": "m", "body": "YQ=="}]},
        {"queue": "once", "messages": [{"message_id": "m", "body": "Yg=="}]},
        {"queue": "nowhere", "messages": [{}]},
        "no object",
    ]
    receives = [{"queue": name, "wait_time_ms": ms} for name in ("q", "idle") for ms in (0, 20_000)]
    encoded = {"Send": sends, "Receive": receives, "Complete": [{"queue": "q", "lock_token": "x"}]}
    return {name: [json.dumps(one).encode() for one in some] for name, some in encoded.items()}


class Client:
    """Sends what it likes and goes when it likes; the same for the same seed."""

    def __init__(self, url: str, seed: int, tokens: list[str]) -> None:
        self.url = url
        self.random = random.Random(seed)
        self.tokens = tokens
        self.bodies = bodies()

    def request(self) -> bytes:
        operation = self.random.choice(["Send", "Send", "Send", "Receive", "Complete"])
        body = self.random.choice(self.bodies[operation])
        token = self.random.choice(self.tokens)
        if self.random.random() < 0.1:
            return post_bytes(operation, b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body), CHUNKED)
        more = self.random.choice([(), (), ("Expect: 100-continue",), ("Connection: close",)])
        return post_bytes(operation, body, *more, token=token)

    def run(self) -> None:
        for _ in range(CONNECTIONS):
            with connect(self.url) as connection, suppress(OSError):
                self.use(connection)

    def use(self, connection: socket.socket) -> None:
        connection.settimeout(0.05)
        sent = b"".join(self.request() for _ in range(self.random.randrange(1, 10)))
        if self.random.random() < 0.3:
            sent = sent[: self.random.randrange(len(sent))] + self.random.choice([b"", b"\0\r\n"])
        cut = self.random.randrange(len(sent) + 1)
        connection.sendall(sent[:cut])
        connection.sendall(sent[cut:])
        how = self.random.randrange(3)
        if how == 0:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        elif how == 1:
            connection.shutdown(socket.SHUT_WR)
        else:
            while connection.recv(65536):
                pass


@pytest.fixture
def broker(mq: Embedded, monkeypatch: pytest.MonkeyPatch) -> Broker:
    made = serve.asgi(mq, tokens=TOKENS, limits=LIMITS)
    monkeypatch.setattr(serve, "asgi", lambda *_, **__: made)
    return made


@pytest.fixture
def url(mq: Embedded, broker: Broker) -> Iterator[str]:
    mq.create_queue("q")
    mq.create_queue("idle")
    mq.create_queue("grouped", ordering_mode="group_fifo")
    mq.create_queue("once", dedup_window="1m")
    mq.subscribe("t", "s")
    with serve.serving(mq, tokens=TOKENS) as where:
        yield where


def test_the_budget_is_whole_again(mq: Embedded, broker: Broker, url: str) -> None:
    tokens = [TOKEN, TOKEN, TOKEN, "wrong", create(mq, "send").token, "mqk_" + "0" * 64]
    clients = [Client(url, seed, tokens) for seed in range(THREADS)]
    threads = [threading.Thread(target=client.run) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    mq.send("idle", b"for a poll that still waits")
    budget = broker.budget
    eventually(lambda: (budget.requests, budget.bytes, budget.answers) == (0, 0, 0))
    assert Api(url).send("q", b"after it")


def test_every_send_is_in_the_log(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those whose client has gone meanwhile."""
    logged: list[int] = []
    add = RequestLog.add

    def count(self: RequestLog, path: str, status: int, *more: object) -> None:
        logged.append(status)
        add(self, path, status, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(RequestLog, "add", count)
    sent = [json.dumps(GOOD).encode(), b"{}", bodies()["Send"][6]]
    for number in range(30):
        request = post_bytes("Send", sent[number % 3])
        with connect(url) as connection:
            connection.sendall(request)
            if number % 2:
                assert connection.recv(65536).startswith(b"HTTP/1.1 ")
    exchange(url, post_bytes("Stats", b'{"queue":"q"}', "Connection: close"))
    eventually(lambda: len(logged) == 31)
    assert logged.count(200) > 10
    assert logged.count(400) > 10

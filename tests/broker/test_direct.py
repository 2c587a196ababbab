"""Sends that are answered without an ASGI call, beside the same ones with it."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
from contextlib import ExitStack
from typing import Any

import pytest

from broker.support import Api, connect, exchange, post_bytes, read_all
from mqlite.broker.app import Broker
from mqlite.broker.connection import Connection
from mqlite.broker.direct import begin
from mqlite.broker.limits import Limits
from mqlite.broker.serve import serving
from mqlite.embedded import Embedded
from mqlite.embedded.gathering import Gathering
from patience import PATIENCE_S, eventually

CLOSE = "Connection: close"
GOOD = {"queue": "q", "messages": [{"body": "YQ==", "properties": {"a": "b"}}]}


def whole(request: dict[str, Any] | bytes, *more: str, **options: str) -> bytes:
    body = request if isinstance(request, bytes) else json.dumps(request).encode()
    return post_bytes("Send", body, *more, **options)


def in_two(url: str, request: bytes) -> bytes:
    """The answer to a request whose body is sent when the broker has asked for it: it has
    begun without it."""
    head, _, body = request.partition(b"\r\n\r\n")
    with connect(url) as connection:
        connection.sendall(head + b"\r\nExpect: 100-continue\r\n\r\n")
        interim = connection.recv(65536)
        if not interim.startswith(b"HTTP/1.1 100 "):
            return interim + read_all(connection)
        connection.sendall(body)
        return read_all(connection)


def without_what_differs(answer: bytes) -> bytes:
    return re.sub(rb"\r\ndate: [^\r]*|\r\ncontent-length: \d+|\d+(?=[],}])", b"", answer)


@pytest.fixture
def queues(api: Api) -> Api:
    api.ok("CreateQueue", name="q")
    api.ok("CreateQueue", name="grouped", config={"ordering_mode": "group_fifo"})
    api.ok("CreateQueue", name="once", config={"dedup_window_ms": 60_000})
    api.ok("Subscribe", topic="t", name="s")
    for name in ("q", "once", "t"):
        api.send(name, b"the broker knows the name now")
    api.ok("Send", queue="grouped", messages=[{"group_id": "g"}])
    api.ok("Send", queue="once", messages=[{"message_id": "m", "body": "YQ=="}])
    return api


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (GOOD, 200),
        ({"queue": "t", "messages": [{}]}, 200),
        ({"queue": "q", "messages": [{}, {}]}, 200),
        ({"queue": "q", "messages": [{}], "results": True}, 200),
        ({"queue": "q", "messages": []}, 200),
        ({"queue": "q", "messages": [{}], "scheduled_enqueue_time_ms": -1}, 400),
        ({"queue": "q", "messages": [{}], "scheduled_enqueue_time_ms": 1}, 400),
        ({"queue": "q", "messages": [{"priority": 5000}]}, 400),
        ({"queue": "q", "messages": [{"body": "!"}]}, 400),
        ({"queue": "q", "messages": [{"body": "A" * 1_600_000}]}, 413),
        ({"queue": "grouped", "messages": [{}]}, 400),
        ({"queue": "once", "messages": [{"message_id": "m", "body": "Yg=="}]}, 409),
        ({"queue": "nowhere", "messages": [{}]}, 404),
        (b'{"Queue":"q"}', 400),
        (b"[" * 100_000, 400),
    ],
)
def test_both_ways_give_the_same_answer(
    queues: Api, request_: dict[str, Any] | bytes, status: int
) -> None:
    request = whole(request_, CLOSE)
    answer = exchange(queues.url, request)
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer
    assert without_what_differs(in_two(queues.url, request)) == without_what_differs(answer)


def test_who_may_not_send_is_refused(queues: Api) -> None:
    answer = exchange(queues.url, whole(GOOD, CLOSE, token="wrong"))
    assert answer.startswith(b"HTTP/1.1 401 ")


def test_no_asgi_call_is_made(queues: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise AssertionError("an ASGI call")

    with connect(queues.url) as connection:
        connection.sendall(whole(GOOD))
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        monkeypatch.setattr(Broker, "__call__", fail)
        connection.sendall(whole(GOOD))
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("request_", [GOOD, {"queue": "q", "messages": [{}, {}]}])
def test_it_is_tried_once(
    queues: Api, request_: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A try that fails has decoded the request for nothing."""
    tries = 0

    def count(*arguments: Any) -> bool:
        nonlocal tries
        tries += 1
        return begin(*arguments)

    monkeypatch.setattr("mqlite.broker.connection.begin", count)
    assert exchange(queues.url, whole(request_, CLOSE)).startswith(b"HTTP/1.1 200 ")
    assert tries == 1


def test_pipelined_sends_are_answered_in_order(queues: Api) -> None:
    stats = post_bytes("Stats", b'{"queue":"q"}')
    sent = whole(GOOD) + whole(GOOD) + stats + whole(GOOD, CLOSE)
    bodies = re.findall(rb"\{.*\}\n", exchange(queues.url, sent))
    first, second, between, last = map(json.loads, bodies)
    [number] = first["seq_numbers"]
    assert second["seq_numbers"] == [number + 1]
    assert between["active"] == 3
    assert last["seq_numbers"] == [number + 2]


def test_the_client_says_when_the_connection_ends(queues: Api) -> None:
    old = whole(GOOD, "Connection: keep-alive").replace(b" HTTP/1.1", b" HTTP/1.0", 1)
    for request in (old, whole(GOOD, CLOSE)):
        answer = exchange(queues.url, request)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"\r\nconnection: close\r\n" in answer


def test_a_body_in_chunks_whose_trailer_says_nothing(queues: Api) -> None:
    chunked = b"%x\r\n%b\r\n0\r\nAuthorization: Bearer wrong\r\n\r\n"
    body = json.dumps(GOOD).encode()
    request = whole(chunked % (len(body), body), "Transfer-Encoding: chunked", CLOSE)
    assert exchange(queues.url, request).startswith(b"HTTP/1.1 200 ")


def test_a_body_that_becomes_invalid_is_not_sent(queues: Api) -> None:
    request = whole(b"5\r\n{}   \r\nno length\r\n", "Transfer-Encoding: chunked")
    assert exchange(queues.url, request).startswith(b"HTTP/1.1 400 ")
    assert queues.ok("Stats", queue="q")["active"] == 1


def test_bodies_of_every_size_in_several_parts(queues: Api) -> None:
    for size in (1, 60_000, 70_000, 700_000):
        request = whole({"queue": "q", "messages": [{"body": "A" * 4 * (size // 4 + 1)}]})
        with connect(queues.url) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for at in range(0, len(request), len(request) // 5):
                connection.sendall(request[at : at + len(request) // 5])
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert queues.ok("Stats", queue="q")["active"] == 5


def test_a_send_behind_answers_that_nobody_takes(queues: Api, made: list[Connection]) -> None:
    queues.send("q", b"x" * 150_000)
    peek = post_bytes("Peek", b'{"queue":"q"}')
    with connect(queues.url) as connection:
        connection.sendall((peek + whole(GOOD)) * 40 + whole(GOOD, CLOSE))
        eventually(lambda: made[-1].flow.write_paused)
        received = read_all(connection)
    numbers = re.findall(rb"\{\"seq_numbers\":\[(\d+)\]", received)
    assert len(numbers) == 41
    assert numbers == sorted(set(numbers), key=int)


def test_a_client_that_leaves_is_not_missed(queues: Api) -> None:
    for _ in range(20):
        with connect(queues.url) as connection:
            connection.sendall(whole(GOOD))
    eventually(lambda: queues.ok("Stats", queue="q")["active"] == 21)
    assert exchange(queues.url, whole(GOOD, CLOSE)).startswith(b"HTTP/1.1 200 ")


def test_one_that_is_refused_by_itself_does_not_concern_the_others(queues: Api) -> None:
    request = {"queue": "once", "messages": [{"message_id": "m", "body": "Yg=="}]}
    other = {"queue": "once", "messages": [{"message_id": "n", "body": "Yg=="}]}
    with connect(queues.url) as one, connect(queues.url) as two:
        one.sendall(whole(request, CLOSE))
        two.sendall(whole(other, CLOSE))
        assert read_all(one).startswith(b"HTTP/1.1 409 ")
        assert read_all(two).startswith(b"HTTP/1.1 200 ")


def test_a_record_that_fails_does_not_concern_the_others(
    queues: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the request log gets no thread for its timer."""
    all_sent = threading.Event()

    def fail(*_: object) -> None:
        all_sent.wait(PATIENCE_S)  # meanwhile the others come, and will be one batch
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Broker, "record", fail)
    with ExitStack() as stack:
        first, *others = [stack.enter_context(connect(queues.url)) for _ in range(10)]
        first.sendall(whole(GOOD))
        assert first.recv(65536).startswith(b"HTTP/1.1 200 ")
        for other in others:
            other.sendall(whole(GOOD))
        all_sent.set()
        for other in others:
            assert other.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_a_send_whose_task_somebody_cancels_is_answered_too(
    mq: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cancelled(*_: object) -> None:
        raise asyncio.CancelledError

    mq.create_queue("q")
    mq.send("q", b"the broker knows the name now")
    with serving(mq, tokens="off") as url:
        monkeypatch.setattr(Gathering, "_run", cancelled)
        assert exchange(url, whole(GOOD, CLOSE)).startswith(b"HTTP/1.1 500 ")


def test_the_limit_of_a_request_holds(mq: Embedded) -> None:
    mq.create_queue("q")
    with serving(mq, tokens="off", limits=Limits(request_bytes=100)) as url:
        assert exchange(url, whole(GOOD, CLOSE)).startswith(b"HTTP/1.1 200 ")
        larger = GOOD | {"ttl_ms": 10**15, "scheduled_enqueue_time_ms": 0}
        assert exchange(url, whole(larger, CLOSE)).startswith(b"HTTP/1.1 413 ")


def test_what_was_counted_is_given_back(mq: Embedded) -> None:
    mq.create_queue("once", dedup_window="1m")
    limits = Limits(requests=2, pending_bytes=1024)
    with serving(mq, tokens="off", limits=limits) as url:
        for number in range(20):
            conflict = {"queue": "once", "messages": [{"message_id": "m", "priority": number}]}
            body = {"queue": "once", "messages": [{"message_id": "m", "body": "YQ=="}]}
            assert exchange(url, whole(body, CLOSE)).startswith(b"HTTP/1.1 200 ")
            assert exchange(url, whole(conflict, CLOSE)).startswith(b"HTTP/1.1 409 ")

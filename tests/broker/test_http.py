"""HTTP itself: malformed, pipelined, chunked, oversized and slow requests."""

from __future__ import annotations

import json

import pytest

from broker.support import TOKEN, Api, connect, exchange, path_of, post_bytes, read_all
from mqlite.broker.connection import MAX_HEADER_BYTES, Connection
from mqlite.broker.limits import Limits, Timeouts
from mqlite.broker.serve import serving
from mqlite.embedded import Embedded
from patience import eventually

MIB = 1024 * 1024
STATS = post_bytes("Stats", b'{"queue":"q"}')
LAST_STATS = post_bytes("Stats", b'{"queue":"q"}', "Connection: close")


def parse(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return int(status.split(" ")[1]), headers, body


def refused(answer: bytes, status: int, said: str) -> None:
    """The last answer before the broker closed is an error envelope."""
    found, headers, body = parse(answer)
    assert found == status, answer
    assert headers["content-type"] == "application/json"
    assert headers["connection"] == "close"
    assert int(headers["content-length"]) == len(body)
    assert body.endswith(b"\n")
    envelope = json.loads(body)
    assert envelope["code"] == "invalid_argument"
    assert said in envelope["message"]


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_malformed_http_is_answered_in_the_envelope(shared_url: str, sent: bytes) -> None:
    refused(exchange(shared_url, sent), 400, "not valid HTTP")


def test_connect_is_refused(shared_url: str) -> None:
    refused(exchange(shared_url, b"CONNECT host:1 HTTP/1.1\r\n\r\n"), 400, "CONNECT")


def test_a_malformed_body_ends_the_request(api: Api) -> None:
    sent = post_bytes("Send", b"zz\r\n", "Transfer-Encoding: chunked")
    refused(exchange(api.url, sent), 400, "not valid HTTP")


def test_what_was_asked_before_the_malformed_part_is_answered_first(api: Api) -> None:
    answer = exchange(api.url, STATS + STATS + b"nonsense\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    refused(answer[answer.index(b"HTTP/1.1 400") :], 400, "not valid HTTP")


def test_pipelined_requests_are_answered_in_order(api: Api) -> None:
    sent = b"".join(
        post_bytes("Send", b'{"queue":"q","messages":[{"subject":"%d"}]}' % number)
        for number in range(50)
    )
    answer = exchange(api.url, sent + LAST_STATS)
    assert answer.count(b"HTTP/1.1 200 OK") == 51
    subjects = [m["subject"] for m in api.receive("q", max_messages=256)]
    assert subjects == [str(number) for number in range(50)]


def test_chunked_requests(api: Api) -> None:
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in b'{"queue":"q"}') + b"0\r\n\r\n"
    sent = post_bytes("Stats", chunks, "Transfer-Encoding: chunked", "Connection: close")
    status, _, body = parse(exchange(api.url, sent))
    assert (status, json.loads(body)["queue"]) == (200, "q")


def test_a_request_that_arrives_byte_by_byte(api: Api) -> None:
    with connect(api.url) as connection:
        for byte in LAST_STATS:
            connection.sendall(bytes([byte]))
        assert parse(read_all(connection))[0] == 200


def test_a_chunked_request_is_bounded_while_it_is_read(api: Api) -> None:
    chunk = b"100000\r\n" + b" " * MIB + b"\r\n"
    sent = post_bytes("Stats", chunk * 33 + b"0\r\n\r\n", "Transfer-Encoding: chunked")
    answer = exchange(api.url, sent + LAST_STATS)
    status, _, body = parse(answer[: answer.rindex(b"HTTP/1.1")])
    assert (status, json.loads(body)["code"]) == (413, "message_too_large")
    # The rest was read and dropped, and the connection is still good.
    assert parse(answer[answer.rindex(b"HTTP/1.1") :])[0] == 200


def test_a_declared_length_above_the_limit_is_refused_before_the_body_is_there(api: Api) -> None:
    sent = post_bytes("Send", b" ", "Content-Length: 99999999999", "Expect: 100-continue")
    with connect(api.url) as connection:
        connection.sendall(sent.replace(b"Content-Length: 1\r\n", b""))
        received = b""
        while b"message_too_large" not in received:
            chunk = connection.recv(65536)
            assert chunk
            received += chunk
    assert b"HTTP/1.1 413" in received


def test_continue_is_answered_when_the_body_is_wanted(api: Api) -> None:
    body = b'{"queue":"q"}'
    head = post_bytes("Stats", body, "Expect: 100-continue", "Connection: close")[: -len(body)]
    with connect(api.url) as connection:
        connection.sendall(head)
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        connection.sendall(body)
        assert parse(read_all(connection))[0] == 200


@pytest.mark.parametrize("protocol", ["h2c", "websocket"])
def test_an_offer_to_upgrade_is_declined(api: Api, protocol: str) -> None:
    offer = ("Connection: Upgrade, HTTP2-Settings", f"Upgrade: {protocol}", "HTTP2-Settings: AAMA")
    sent = post_bytes("Stats", b'{"queue":"q"}', *offer)
    chunked = post_bytes(
        "Stats", b'd\r\n{"queue":"q"}\r\n0\r\n\r\n', "Transfer-Encoding: chunked", *offer
    )
    with connect(api.url) as connection:
        connection.sendall(sent[:-5])
        connection.sendall(sent[-5:] + chunked + LAST_STATS)
        assert read_all(connection).count(b"HTTP/1.1 200 OK") == 3


def test_http_1_0(shared_url: str) -> None:
    status, headers, body = parse(exchange(shared_url, b"GET /healthz HTTP/1.0\r\n\r\n"))
    assert (status, headers["connection"], body) == (200, "close", b"ok")


def test_a_large_header_passes_and_a_larger_one_does_not(shared_url: str) -> None:
    filler = b"X-Filler: " + b"x" * (900 * 1024) + b"\r\n"
    start = b"GET /healthz HTTP/1.1\r\nConnection: close\r\n"
    assert parse(exchange(shared_url, start + filler + b"\r\n"))[0] == 200
    with connect(shared_url) as connection:
        sent = len(start)
        connection.sendall(start)
        while sent <= MAX_HEADER_BYTES:
            connection.sendall(b"X-Filler: " + b"x" * 1012 + b"\r\n")
            sent += 1024
        refused(read_all(connection), 431, "larger than 1048576 bytes")


@pytest.mark.parametrize(
    ("sent", "status", "said"),
    [
        (b"GET / HT", 408, "header"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n", 408, "header"),
        (post_bytes("Stats", b"x" * 10)[:-5], 408, "request"),
        (post_bytes("Stats", b"5\r\nab", "Transfer-Encoding: chunked"), 408, "request"),
    ],
)
def test_slow_requests_are_ended(mq: Embedded, sent: bytes, status: int, said: str) -> None:
    with serving(mq, tokens=[TOKEN], timeouts=Timeouts(header=0.5, request=1.0)) as url:
        refused(exchange(url, sent), status, said)


def test_a_slow_second_header_is_ended_after_the_first_answer(mq: Embedded) -> None:
    with serving(mq, tokens=[TOKEN], timeouts=Timeouts(header=0.5)) as url:
        answer = exchange(url, b"GET /healthz HTTP/1.1\r\n\r\nGET /")
    assert answer.startswith(b"HTTP/1.1 200")
    refused(answer[answer.index(b"HTTP/1.1 408") :], 408, "header")


@pytest.mark.parametrize("timeouts", [Timeouts(header=0.1), Timeouts(idle=0.1)])
def test_silent_connections_are_closed(mq: Embedded, timeouts: Timeouts) -> None:
    with serving(mq, tokens=[TOKEN], timeouts=timeouts) as url, connect(url) as connection:
        if timeouts.idle < 1:
            connection.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            assert read_all(connection).startswith(b"HTTP/1.1 200")
        else:
            assert read_all(connection) == b""


def test_a_body_that_never_ends_is_cut_off_after_the_refusal(mq: Embedded) -> None:
    sent = post_bytes("Stats", b"{", "Content-Length: 1000", token="wrong")
    with serving(mq, tokens=[TOKEN], timeouts=Timeouts(request=0.2)) as url:
        answer = exchange(url, sent.replace(b"Content-Length: 1\r\n", b""))
    assert answer.startswith(b"HTTP/1.1 401")
    assert answer.count(b"HTTP/1.1") == 1


def test_a_reader_that_takes_nothing_counts_and_is_dropped(mq: Embedded) -> None:
    limits = Limits(pending_bytes=16 * MIB)
    with serving(mq, tokens=[TOKEN], timeouts=Timeouts(stall=2.0), limits=limits) as url:
        api = Api(url)
        api.ok("CreateQueue", name="q")
        for _ in range(20):
            api.send("q", b"x" * MIB)
        with connect(url) as connection:
            connection.sendall(post_bytes("Peek", b'{"queue":"q"}'))
            eventually(lambda: api.post("Peek", {"queue": "q", "max": 1}).status == 503)
            assert api.post("Stats", {"queue": "q"}).status == 200
            eventually(lambda: api.post("Peek", {"queue": "q", "max": 1}).status == 200)
            answer = read_all(connection)
    length = int(parse(answer)[1]["content-length"])
    assert len(answer) < length


def test_a_connection_that_came_too_late_to_be_told_of_the_stop(
    mq: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kept alive, it would keep the broker as long as its client goes on asking."""
    monkeypatch.setattr(Connection, "shutdown", lambda _: None)
    with (
        serving(mq, tokens=[TOKEN], timeouts=Timeouts(grace=1)) as url,
        connect(url) as connection,
    ):
        connection.sendall(STATS)
        assert parse(connection.recv(65536))[0] == 404
        mq.close()
        connection.sendall(STATS)
        status, headers, _ = parse(read_all(connection))
    assert (status, headers["connection"]) == (503, "close")


def test_answers_and_errors_never_carry_a_charset(shared_api: Api) -> None:
    for reply in (
        shared_api.post("ListQueues", b""),
        shared_api.post("Stats", {"queue": "no"}),
        shared_api.request("POST", path_of("Stats"), b"{", {}),
    ):
        assert reply.headers["content-type"] == "application/json"


def test_the_limits_and_deadlines_of_a_broker_by_itself() -> None:
    timeouts = Timeouts()
    assert (timeouts.header, timeouts.request, timeouts.idle) == (10, 60, 120)
    assert Limits().request_bytes == 32 * MIB

"""Bytes that are sent to harm the broker, or those who share it."""

from __future__ import annotations

import logging
import socket
from contextlib import suppress

import pytest

from broker.support import TOKEN, Api, address, connect, exchange, post_bytes, read_all
from mqlite.broker.connection import MAX_HEADER_BYTES, Connection
from mqlite.broker.limits import Timeouts
from mqlite.broker.serve import serving
from mqlite.embedded import Embedded
from patience import eventually

BODY = b'{"queue":"q","messages":[{}]}'
CHUNKED = "Transfer-Encoding: chunked"


def chunked(*trailer: bytes) -> bytes:
    lines = b"".join(line + b"\r\n" for line in trailer)
    return b"%x\r\n%s\r\n0\r\n%s\r\n" % (len(BODY), BODY, lines)


def test_a_trailer_does_not_say_who_calls(api: Api) -> None:
    trailer = b"Authorization: Bearer " + TOKEN.encode()
    sent = post_bytes("Send", chunked(trailer), CHUNKED, "Connection: close", token="wrong")
    anonymous = sent.replace(b"Authorization: Bearer wrong\r\n", b"")
    assert exchange(api.url, anonymous).startswith(b"HTTP/1.1 401 ")
    authentic = post_bytes("Send", chunked(trailer), CHUNKED, "Connection: close")
    assert exchange(api.url, authentic).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("line", [b"x: " + b"y" * 1000 + b"\r\n", b"y" * 1000])
def test_a_trailer_is_bounded(api: Api, line: bytes) -> None:
    """Also one whose request was answered before."""
    with connect(api.url) as connection:
        connection.sendall(post_bytes("Send", chunked()[:-2], CHUNKED, token="wrong"))
        assert connection.recv(65536).startswith(b"HTTP/1.1 401 ")
        connection.sendall(b"x: ")
        connection.sendall(line * (2 * MAX_HEADER_BYTES // len(line)))
        assert not read_all(connection)


def test_a_trailer_that_is_too_large_ends_its_request(api: Api) -> None:
    start = post_bytes("Send", chunked()[:-2], CHUNKED)
    with connect(api.url) as connection:
        connection.sendall(start)
        connection.sendall(b"x: " + b"y" * (MAX_HEADER_BYTES - 3 - len(start)))
        connection.sendall(b"y" * 512)
        assert b"HTTP/1.1 431 " in read_all(connection)
    assert api.ok("Stats", queue="q")["total"] == 0


def test_a_refusal_reaches_a_client_that_goes_on_sending(shared_url: str) -> None:
    with connect(shared_url) as connection:
        for part in (b"this is not HTTP\r\n\r\n", *[b"x" * 50_000] * 10):
            connection.sendall(part)
        assert read_all(connection).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("more", [(), ("Connection: close",)])
def test_who_may_not_call_reads_so_behind_a_large_body(
    shared_url: str, more: tuple[str, ...]
) -> None:
    with connect(shared_url) as connection:
        connection.sendall(post_bytes("Send", b"x" * 8_000_000, *more, token="wrong"))
        assert connection.recv(65536).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("sends", [True, False])
def test_a_client_that_was_refused_and_stays_is_cut_off(
    mq: Embedded, made: list[Connection], monkeypatch: pytest.MonkeyPatch, sends: bool
) -> None:
    linger, request = (60, 0.2) if sends else (0.05, 60)
    monkeypatch.setattr("mqlite.broker.bounded._LINGER_SECONDS", linger)
    timeouts = Timeouts(idle=0.1, request=request)
    with serving(mq, tokens=[TOKEN], timeouts=timeouts) as url, connect(url) as connection:
        connection.sendall(b"this is not HTTP\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 400 ")

        def is_cut_off() -> bool:
            if sends:
                with suppress(OSError):
                    connection.sendall(b"x")
            return made[0] not in made[0].connections

        eventually(is_cut_off)


def test_many_offers_to_upgrade_are_declined_one_after_the_other(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    offer = post_bytes("Stats", b'{"queue":"q"}', "Connection: upgrade", "Upgrade: h2c")
    last = post_bytes("Stats", b'{"queue":"q"}', "Connection: close")
    with caplog.at_level(logging.ERROR):
        answers = exchange(api.url, offer * 1500 + last)
    assert answers.count(b"HTTP/1.1 200 ") == 1501
    assert not caplog.records


def test_a_connection_that_was_answered_early_does_not_stay(mq: Embedded) -> None:
    head, _, body = post_bytes("Send", BODY, token="wrong").partition(b"\r\n\r\n")
    with (
        serving(mq, tokens=[TOKEN], timeouts=Timeouts(idle=0.1)) as url,
        connect(url) as connection,
    ):
        connection.sendall(head + b"\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 401 ")
        connection.sendall(body)
        assert not connection.recv(65536)


def test_a_reader_that_leaves_little_unread_is_dropped_too(
    mq: Embedded, made: list[Connection]
) -> None:
    """Less than what makes the transport pause, and it is told of a close as little as of an
    answer."""
    mq.create_queue("q")
    mq.send("q", b"x" * 20_000)
    timeouts = Timeouts(idle=0.1, stall=0.2)
    with (
        serving(mq, tokens=[TOKEN], timeouts=timeouts) as url,
        socket.socket() as client,
    ):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(address(url))
        answered = 0
        while not (made and made[0].transport.get_write_buffer_size()):
            client.sendall(post_bytes("Peek", b'{"queue":"q"}'))
            answered += 1
            eventually(lambda n=answered: made and made[0].server_state.total_requests == n)
        assert not made[0].flow.write_paused
        eventually(lambda: made[0] not in made[0].connections)

"""Connections that are kept, cut, silent or broken: nothing is done twice, nothing made up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from client.conftest import Connect
from client.peer import NOTHING, OK, SENT, STATS, Peer, answer, reset, scripted
from mqlite.api import MQ
from mqlite.client import discipline
from mqlite.errors import MessageTooLarge, MqliteError, OutcomeUnknown, Unavailable
from patience import start

Calls = Callable[[MQ], object]

SETTLES: dict[str, tuple[Calls, bytes]] = {
    "complete": (lambda mq: mq.complete("q", 1, "t"), OK),
    "abandon": (lambda mq: mq.abandon("q", 1, "t", delay=5), OK),
    "release": (lambda mq: mq.release("q", 1, "t"), OK),
    "reject": (lambda mq: mq.reject("q", 1, "t", reason="no"), OK),
    "defer": (lambda mq: mq.defer("q", 1, "t"), OK),
    "renew": (lambda mq: mq.renew("q", 1, "t"), answer({"results": [{"seq_number": 1, "ok": True}]})),
    "complete_batch": (
        lambda mq: mq.complete_batch("q", [(1, "t")]),
        answer({"results": [{"seq_number": 1, "ok": True}]}),
    ),
    "create_queue": (lambda mq: mq.create_queue("q"), answer({})),
    "pause_queue": (lambda mq: mq.pause_queue("q"), answer({})),
    "resume_queue": (lambda mq: mq.resume_queue("q"), answer({})),
    "subscribe": (lambda mq: mq.subscribe("t", "s"), answer({})),
}  # fmt: skip
ONCE: dict[str, Calls] = {
    "send": lambda mq: mq.send("q", b"x"),
    "send_batch": lambda mq: mq.send_batch("q", [b"x", b"y"]),
    "cancel": lambda mq: mq.cancel("q", 1),
    "receive_deferred": lambda mq: mq.receive_deferred("q", [1]),
    "redrive": lambda mq: mq.redrive("q"),
    "purge": lambda mq: mq.purge("q"),
}
READS: dict[str, tuple[Calls, bytes]] = {
    "stats": (lambda mq: mq.stats("q"), STATS),
    "peek": (lambda mq: mq.peek("q"), NOTHING),
    "list_queues": (lambda mq: mq.list_queues(), answer({"queues": []})),
    "list_subscriptions": (lambda mq: mq.list_subscriptions(), answer({"subscriptions": []})),
    "test_filter": (
        lambda mq: mq.test_filter("true"),
        answer({"valid": True, "ran": False, "matched": False}),
    ),
}
CUTS = {
    "before the answer": b"",
    "in the status": b"HTTP/1.1 20",
    "in the headers": b"HTTP/1.1 200 OK\r\nDate: Mon",
    "after a header": b"HTTP/1.1 200 OK\r\nDate: Mon, 30 Nov 2026 02:02:29 GMT\r\n",
    "in the length": b"HTTP/1.1 200 OK\r\nContent-Length: 1",
    "in the body": OK[:-3],
}
GARBAGE = b"\x15\x03\x01\x00\x02\x02\x16 not HTTP\r\n\r\n"


def test_a_connection_is_used_again(connect: Connect) -> None:
    with scripted(lambda peer: peer.serve(OK, OK, OK)) as peer:
        mq = connect(peer.url)
        for seq in range(1, 4):
            mq.complete("q", seq, "t")
    assert (len(peer.connections), len(peer.bodies)) == (1, 3)


def test_an_answer_that_closes_the_connection(connect: Connect) -> None:
    last = answer({"queue": "q"}, Connection="close")

    def script(peer: Peer) -> None:
        peer.serve(last).close()
        peer.serve(last).close()

    with scripted(script) as peer:
        mq = connect(peer.url)
        mq.stats("q")
        mq.stats("q")
    assert (len(peer.connections), len(peer.bodies)) == (2, 2)


def test_an_idle_connection_that_the_broker_closed_is_replaced(connect: Connect) -> None:
    closed = threading.Event()

    def script(peer: Peer) -> None:
        peer.serve(SENT).close()
        closed.set()
        peer.serve(SENT)

    with scripted(script) as peer:
        mq = connect(peer.url)
        mq.send("q", b"one")
        assert closed.wait(30)
        mq.send("q", b"two")
    assert len(peer.bodies) == 2


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("call", ONCE)
def test_what_might_be_done_twice_is_not_sent_again(connect: Connect, call: str, cut: str) -> None:
    with scripted(lambda peer: peer.cut(after=CUTS[cut])) as peer:
        mq = connect(peer.url)
        with pytest.raises(OutcomeUnknown, match="may or may not have been done"):
            ONCE[call](mq)
    assert len(peer.bodies) == 1


@pytest.mark.parametrize("call", SETTLES)
def test_a_settlement_is_repeated_as_the_exact_request(connect: Connect, call: str) -> None:
    act, success = SETTLES[call]

    def script(peer: Peer) -> None:
        for cut in (b"", OK[:-3], CUTS["after a header"]):
            peer.cut(after=cut)
        peer.serve(success)

    with scripted(script) as peer:
        act(connect(peer.url))
    assert len(peer.bodies) == 4
    assert len(set(peer.bodies)) == 1


def test_a_settlement_that_is_never_answered_is_unknown(connect: Connect) -> None:
    def script(peer: Peer) -> None:
        for _ in range(discipline.ATTEMPTS):
            peer.cut()

    with scripted(script) as peer:
        mq = connect(peer.url)
        with pytest.raises(OutcomeUnknown):
            mq.complete("q", 1, "t")
    assert len(peer.bodies) == discipline.ATTEMPTS


def test_no_repeats_where_the_caller_wants_none(connect: Connect) -> None:
    with scripted(lambda peer: peer.cut()) as peer:
        mq = connect(peer.url, retry_for=0)
        with pytest.raises(OutcomeUnknown):
            mq.complete("q", 1, "t")
    assert len(peer.bodies) == 1


@pytest.mark.parametrize("call", READS)
def test_a_read_is_repeated(connect: Connect, call: str) -> None:
    act, success = READS[call]

    def script(peer: Peer) -> None:
        for cut in (b"", OK[:-3], CUTS["after a header"]):
            peer.cut(after=cut)
        peer.serve(success)

    with scripted(script) as peer:
        act(connect(peer.url))
    assert len(peer.bodies) == 4


def test_a_read_that_is_never_answered_is_unavailable(connect: Connect) -> None:
    def script(peer: Peer) -> None:
        for _ in range(discipline.ATTEMPTS):
            peer.cut()

    with scripted(script) as peer:
        mq = connect(peer.url)
        with pytest.raises(Unavailable) as caught:
            mq.stats("q")
    assert caught.value.reason == "unreachable"


@pytest.mark.parametrize("mode", ["peek_lock", "receive_and_delete"])
@pytest.mark.parametrize("attempt_id", ["", "mine"])
def test_a_receive_is_repeated_under_one_attempt_id(
    connect: Connect, mode: str, attempt_id: str
) -> None:
    message = {"seq_number": 7, "body": "eA=="}

    def script(peer: Peer) -> None:
        peer.cut()
        peer.serve(answer({"messages": [message]}))

    with scripted(script) as peer:
        mq = connect(peer.url)
        [received] = mq.receive("q", mode=mode, attempt_id=attempt_id)  # type: ignore[arg-type]
    assert (received.seq_number, received.body) == (7, b"x")
    first, second = (request["receive_attempt_id"] for request in peer.requests)
    assert first == second
    assert first == attempt_id if attempt_id else len(first) >= 32


def test_attempt_ids_differ_from_call_to_call(connect: Connect) -> None:
    with scripted(lambda peer: peer.serve(NOTHING, NOTHING)) as peer:
        mq = connect(peer.url)
        mq.receive("q")
        mq.receive("q")
    first, second = (request["receive_attempt_id"] for request in peer.requests)
    assert first != second


def test_no_answer_in_time_is_an_answer_lost(connect: Connect) -> None:
    with scripted(lambda peer: peer.hang()) as peer:
        mq = connect(peer.url, timeout="50ms")
        with pytest.raises(OutcomeUnknown, match="no answer came in time"):
            mq.send("q", b"x")
    assert len(peer.bodies) == 1


def test_the_timeout_leaves_a_long_poll_its_time(connect: Connect) -> None:
    def script(peer: Peer) -> None:
        connection = peer.accept()
        peer.read(connection)
        time.sleep(0.2)  # longer than the timeout, shorter than the poll
        connection.sendall(NOTHING)

    with scripted(script) as peer:
        assert connect(peer.url, timeout="50ms").receive("q", wait="5s") == []


@pytest.mark.parametrize(
    ("call", "error"),
    [(ONCE["send"], OutcomeUnknown), (READS["stats"][0], Unavailable)],
    ids=["send", "stats"],
)
def test_what_is_not_http(connect: Connect, call: Calls, error: type[MqliteError]) -> None:
    with scripted(lambda peer: peer.serve(GARBAGE).close()) as peer:
        mq = connect(peer.url, retry_for=0)
        with pytest.raises(error):
            call(mq)


@pytest.mark.parametrize("length", [10**15, 10**20])
def test_an_answer_that_claims_more_than_memory_holds_is_lost(
    connect: Connect, length: int
) -> None:
    claimed = f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{{}}".encode()
    with scripted(lambda peer: peer.serve(claimed).close()) as peer:
        mq = connect(peer.url, retry_for=0)
        with pytest.raises(OutcomeUnknown):
            mq.send("q", b"x")


@pytest.mark.parametrize("status", ["502 Bad Gateway", "503 Unavailable", "504 Gateway Timeout"])
def test_a_gateway_does_not_know_what_became_of_a_request(connect: Connect, status: str) -> None:
    gateway = answer(b"<html>", status)
    with scripted(lambda peer: peer.serve(gateway, gateway, OK)) as peer:
        mq = connect(peer.url)
        with pytest.raises(OutcomeUnknown, match=status[:3]):
            mq.send("q", b"x")
        mq.complete("q", 1, "t")
    assert len(peer.bodies) == 3


def test_an_answer_that_nothing_was_done_is_handed_on(connect: Connect) -> None:
    overloaded = answer(
        {"code": "unavailable", "message": "too much"}, "503 Unavailable", Retry_After="7"
    )
    with scripted(lambda peer: peer.serve(*[overloaded] * 4)) as peer:
        mq = connect(peer.url)
        for call in (ONCE["send"], SETTLES["complete"][0], READS["stats"][0]):
            with pytest.raises(Unavailable, match="too much") as caught:
                call(mq)
            assert caught.value.retry_after == 7
        with pytest.raises(Unavailable):
            mq.receive("q")
    assert len(peer.bodies) == 4


def test_an_outcome_the_broker_does_not_know_is_handed_on(connect: Connect) -> None:
    unknown = answer({"code": "outcome_unknown", "message": "lost it"}, "503 Unavailable")
    with scripted(lambda peer: peer.serve(unknown, unknown)) as peer:
        mq = connect(peer.url)
        for call in (ONCE["send"], SETTLES["complete"][0]):
            with pytest.raises(OutcomeUnknown, match="lost it"):
                call(mq)
    assert len(peer.bodies) == 2


def test_a_redirection_is_not_followed(connect: Connect) -> None:
    moved = answer(b"", "307 Temporary Redirect", Location="/elsewhere")
    with scripted(lambda peer: peer.serve(moved)) as peer:
        mq = connect(peer.url)
        with pytest.raises(MqliteError, match="307"):
            mq.send("q", b"x")
    assert len(peer.bodies) == 1


@pytest.mark.parametrize("code", ["not_found", "queue_changed"])
def test_a_repeated_deletion_that_finds_nothing_has_been_done(connect: Connect, code: str) -> None:
    gone = answer({"code": code, "message": "gone"}, "404 Not Found")

    def script(peer: Peer) -> None:
        peer.cut()
        peer.serve(gone, gone)

    with scripted(script) as peer:
        mq = connect(peer.url)
        mq.delete_queue("q", generation="7")
        with pytest.raises(MqliteError, match="gone"):
            mq.delete_queue("q", generation="7")


def test_threads_have_a_connection_each(connect: Connect) -> None:
    def script(peer: Peer) -> None:
        connections = [peer.accept(), peer.accept()]
        for connection in connections:
            peer.read(connection)
        for connection in connections:
            connection.sendall(STATS)

    with scripted(script) as peer:
        mq = connect(peer.url)
        for call in [start(mq.stats, "q") for _ in range(2)]:
            assert call.result(30).queue == "q"
    assert (len(peer.connections), len(peer.bodies)) == (2, 2)


def test_a_prefix_is_kept_as_it_stands(connect: Connect) -> None:
    with scripted(lambda peer: peer.serve(STATS)) as peer:
        connect(f"{peer.url}/base/a%2Fb%20c/").stats("q")
    assert peer.heads[0].split()[1] == b"/base/a%2Fb%20c/mqlite.v1.QueueService/Stats"


def test_a_large_request_arrives(connect: Connect) -> None:
    body = bytes(3_000_000)
    with scripted(lambda peer: peer.serve(SENT)) as peer:
        assert connect(peer.url).send("q", body) == 1
    assert len(peer.bodies[0]) > 4_000_000


@pytest.mark.parametrize("kind", ["sync"])
def test_a_request_that_was_not_handed_over_whole_is_sent_again(connect: Connect) -> None:
    def script(peer: Peer) -> None:
        reset(peer.accept())
        peer.serve(SENT)

    with scripted(script) as peer:
        assert connect(peer.url).send("q", bytes(20_000_000)) == 1
    assert (len(peer.connections), len(peer.bodies)) == (2, 1)


@pytest.mark.parametrize("kind", ["sync"])
def test_a_request_that_is_refused_before_all_of_it_was_sent(connect: Connect) -> None:
    refusal = answer({"code": "message_too_large", "message": "less, please"}, "413 Too Large")

    def script(peer: Peer) -> None:
        connection = peer.accept()
        connection.recv(1000)
        connection.sendall(refusal)
        reset(connection)

    with scripted(script) as peer:
        mq = connect(peer.url)
        with pytest.raises(MessageTooLarge, match="less, please"):
            mq.send("q", bytes(20_000_000))
    assert len(peer.connections) == 1

"""What the client makes of answers, and of none."""

from __future__ import annotations

import socket
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import mqlite
from client import stub
from client.conftest import Connect
from client.peer import answer, scripted
from mqlite import errors
from mqlite.api import MQ
from mqlite.errors import (
    InvalidArgument,
    LockLost,
    MessageTooLarge,
    MqliteError,
    NotFound,
    Unavailable,
    Unsupported,
)

Envelope = dict[str, Any]
Answering = Callable[[int, Any], MQ]


@pytest.fixture
def answering(connect: Connect) -> Iterator[Answering]:
    """A client of a broker that answers everything alike."""
    with ExitStack() as stack:

        def answering(status: int, answer: Any) -> MQ:
            broker = stub.serving(lambda method, body: (status, answer))
            return connect(stack.enter_context(broker).url, retry_for=0)

        yield answering


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidArgument,
        errors.GroupRequired,
        errors.Unauthenticated,
        errors.PermissionDenied,
        errors.NotFound,
        errors.DedupConflict,
        errors.NameConflict,
        errors.LockLost,
        errors.QueueNotEmpty,
        errors.QueueChanged,
        errors.MessageTooLarge,
        errors.Unavailable,
        errors.OutcomeUnknown,
    ],
)
def test_every_code_is_its_error(answering: Answering, error: type[MqliteError]) -> None:
    mq = answering(error.status, {"code": error.code, "message": "what happened"})
    with pytest.raises(error, match=r"^what happened$") as caught:
        mq.stats("q")
    assert type(caught.value) is error


@pytest.mark.parametrize(
    ("status", "envelope"),
    [
        (404, {"code": "not_found", "message": "no such path: /x"}),
        (404, {"message": "nothing here"}),
        (405, {"code": "unimplemented", "message": "POST only"}),
    ],
)
def test_an_operation_the_broker_does_not_have(
    answering: Answering, status: int, envelope: Envelope
) -> None:
    with pytest.raises(Unsupported):
        answering(status, envelope).stats("q")


def test_a_missing_operation_is_named(answering: Answering) -> None:
    with pytest.raises(Unsupported, match="operation Release"):
        answering(404, stub.NO_PATH).release("q", 1, "t")


def test_another_application_is_not_taken_for_an_old_broker(answering: Answering) -> None:
    with pytest.raises(mqlite.Unsupported, match=r"is it the right address, with its prefix\?"):
        answering(404, {"detail": "Not Found"}).stats("q")


@pytest.mark.parametrize(
    "message",
    [
        'json: unknown field "priority"',
        "Object contains unknown field `priority` - at `$.messages[0]`",
    ],
)
def test_a_field_the_broker_does_not_know_is_named(answering: Answering, message: str) -> None:
    mq = answering(400, {"code": "invalid_argument", "message": message})
    with pytest.raises(Unsupported, match="field priority of Send"):
        mq.send("q", b"x", priority=3)


def test_an_unknown_code_is_told(answering: Answering) -> None:
    mq = answering(418, {"code": "teapot", "message": "short and stout"})
    with pytest.raises(MqliteError, match=r"short and stout \(code teapot, HTTP status 418\)"):
        mq.stats("q")


@pytest.mark.parametrize("status", [200, 404, 502])
@pytest.mark.parametrize("answer", [b"<html>", b"", b"[]", b"\xff", b'{"x":' + b"[" * 9000])
def test_an_answer_that_is_no_brokers(answering: Answering, status: int, answer: bytes) -> None:
    with pytest.raises(MqliteError, match=str(status)):
        answering(status, answer).stats("q")


def test_a_settlement_that_is_not_ok_is_a_lost_lock(answering: Answering) -> None:
    with pytest.raises(LockLost):
        answering(200, {"ok": False}).complete("q", 1, "t")


@pytest.mark.parametrize("numbers", [None, [], [1, 2]])
def test_a_send_without_its_number_is_an_error(
    answering: Answering, numbers: list[int] | None
) -> None:
    with pytest.raises(MqliteError, match="numbers for 1 message"):
        answering(200, {"seq_numbers": numbers}).send("q", b"x")


def test_an_empty_batch_may_be_answered_with_null(answering: Answering) -> None:
    assert answering(200, {"seq_numbers": None}).send_batch("q", []) == []


def test_renewing_one_message_reports_its_deadline_or_falls_back(connect: Connect) -> None:
    def modern(method: str, body: dict[str, Any]) -> stub.Answer:
        assert method == "RenewBatch"
        return 200, {"results": [{"seq_number": 1, "ok": True, "locked_until_ms": 5}]}

    def old(method: str, body: dict[str, Any]) -> stub.Answer:
        return (200, {"ok": True}) if method == "Renew" else (404, stub.NO_PATH)

    with stub.serving(modern) as broker:
        assert connect(broker.url).renew("q", 1, "t").locked_until_ms == 5
    with stub.serving(old) as broker:
        mq = connect(broker.url)
        assert mq.renew("q", 1, "t").ok
        assert mq.renew("q", 1, "t").ok
        assert broker.methods == ["RenewBatch", "Renew", "Renew"]


def test_deleting_looks_the_generation_up_once(connect: Connect) -> None:
    entry = {
        "name": "q",
        "kind": "queue",
        "lock_duration_ms": 1,
        "max_delivery_count": 1,
        "default_ttl_ms": 0,
        "dedup_window_ms": 0,
        "generation": "g7",
    }

    def behaviour(method: str, body: dict[str, Any]) -> stub.Answer:
        return 200, {"queues": [entry]} if method == "ListQueues" else {"deleted": True}

    with stub.serving(behaviour) as broker:
        mq = connect(broker.url)
        mq.delete_queue("q")
        mq.delete_queue("q", generation="old")
        with pytest.raises(NotFound):
            mq.delete_queue("other")
    sent = [request.body for request in broker.requests if request.method == "DeleteQueue"]
    assert sent == [{"name": "q", "generation": "g7"}, {"name": "q", "generation": "old"}]


def test_optional_fields_are_left_out(connect: Connect) -> None:
    answers = {"Send": {"seq_numbers": [1]}, "Receive": {"messages": []}, "Abandon": {"ok": True}}
    with stub.serving(lambda method, body: (200, answers[method])) as broker:
        mq = connect(broker.url)
        mq.send("q", b"")
        mq.receive("q", attempt_id="a")
        mq.abandon("q", 1, "t")
    assert [request.body for request in broker.requests] == [
        {"queue": "q", "messages": [{}]},
        {"queue": "q", "max_messages": 1, "receive_attempt_id": "a"},
        {"queue": "q", "seq_number": 1, "lock_token": "t"},
    ]


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.receive("q", max_messages=257),
        lambda client: client.receive("q", wait="21s"),
        lambda client: client.receive("q", mode="steal"),
        lambda client: client.peek("q", max_messages=0),
        lambda client: client.peek("q", state="lost"),
        lambda client: client.send("q", b"", ttl=0),
        lambda client: client.redrive("q", older_than=-1),
        lambda client: client.create_queue("q", lock_duration=0),
        lambda client: client.create_queue("\udcff"),
    ],
)
def test_values_out_of_range_are_refused_without_a_request(
    connect: Connect, call: Callable[[MQ], object]
) -> None:
    with stub.serving(stub.empty) as broker:
        mq = connect(broker.url)
        with pytest.raises(InvalidArgument):
            call(mq)
    assert broker.requests == []


def test_a_request_over_the_limit_is_refused_here(connect: Connect) -> None:
    with pytest.raises(MessageTooLarge):
        connect("http://127.0.0.1:1").send("q", bytes(25 * 1024 * 1024))


@pytest.mark.parametrize(
    ("endpoint", "token"),
    [
        ("http://user:secret@h", ""),
        ("http://h?token=secret", ""),
        ("http://h", "secret\nX: y"),
        ("http://h", "secret\u00e9"),
    ],
)
def test_what_a_client_cannot_use(connect: Connect, endpoint: str, token: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        connect(endpoint, token=token)
    if "?" not in endpoint:
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"timeout": 0}, "timeout"),
        ({"timeout": "soon"}, "timeout"),
        ({"connect_timeout": -1}, "connect_timeout"),
        ({"retry_for": None}, "retry_for"),
        ({"retries": 3}, "known are timeout"),
    ],
)
def test_options_that_cannot_be(connect: Connect, options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArgument, match=field):
        connect("http://h", **options)


def test_connecting_talks_to_nobody(connect: Connect) -> None:
    connect("http://127.0.0.1:1")


@pytest.mark.parametrize("make", [mqlite.Client, mqlite.AsyncClient])
def test_a_client_does_not_show_its_token(make: Any) -> None:
    client = make("mqlite://secret@h", token="hidden")
    assert repr(client) == f"<{make.__name__} 'http://h:6754'>"
    assert client.base_url == "http://h:6754"


@pytest.mark.parametrize(
    "behaviour",
    [
        lambda method, body: (401, {"code": "unauthenticated", "message": "who are you?"}),
        lambda method, body: (502, b"<html>"),
        lambda method, body: (200, b"<html>"),
        None,
    ],
)
def test_no_error_shows_the_token(connect: Connect, behaviour: Any) -> None:
    with ExitStack() as stack:
        url = "http://127.0.0.1:1"
        if behaviour is not None:
            url = stack.enter_context(stub.serving(behaviour)).url
        mq = connect(url.replace("http://", "mqlite://secret@"), retry_for=0)
        for call in (lambda: mq.send("q", b"x"), lambda: mq.stats("q")):
            with pytest.raises(MqliteError) as caught:
                call()
            shown = "".join(traceback.format_exception(caught.value))
            assert "secret" not in shown.replace("mqlite://secret@", "")


def test_the_token_is_sent(connect: Connect) -> None:
    with stub.serving(stub.empty) as broker:
        connect(broker.url.replace("http://", "mqlite://one@")).list_queues()
        connect(broker.url.replace("http://", "mqlite://one@"), token="two").list_queues()
        connect(broker.url).list_queues()
    assert [request.token for request in broker.requests] == ["Bearer one", "Bearer two", None]


def test_nobody_listens(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Unavailable, match=f":{port}: Connection refused") as caught:
        connect(f"http://127.0.0.1:{port}").send("q", b"x")
    assert caught.value.reason == "unreachable"


def test_a_name_that_does_not_exist(connect: Connect) -> None:
    with pytest.raises(Unavailable, match=r"no-such-host\.invalid"):
        connect("http://no-such-host.invalid").send("q", b"x")


@pytest.mark.parametrize("results", [[], [{"seq_number": 1, "ok": True}] * 2])
def test_a_batch_without_a_result_for_each_is_an_error(
    answering: Answering, results: list[Any]
) -> None:
    mq = answering(200, {"results": results})
    for settle in (mq.complete_batch, mq.renew_batch):
        with pytest.raises(MqliteError, match="results for 1 message"):
            settle("q", [(1, "t")])


def test_a_refusal_that_quotes_the_caller_says_nothing_of_fields(answering: Answering) -> None:
    message = 'unexpected token Identifier("field") (1:9)\n | unknown field `expr`'
    with pytest.raises(InvalidArgument):
        answering(400, {"code": "invalid_argument", "message": message}).test_filter("x")


def test_a_time_to_wait_that_nobody_could_mean_is_left_out(connect: Connect) -> None:
    body = {"code": "unavailable", "message": "full"}
    full = answer(body, "503 Service Unavailable", Retry_After="9" * 5000)
    with scripted(lambda peer: peer.serve(full)) as peer:
        with pytest.raises(Unavailable, match="full") as caught:
            connect(peer.url).stats("q")
        assert caught.value.retry_after is None

"""What the client makes of answers, and of none."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from client import stub
from mqlite import errors
from mqlite.client import Client
from mqlite.errors import (
    Closed,
    InvalidArgument,
    LockLost,
    MessageTooLarge,
    MqliteError,
    NotFound,
    Unavailable,
    Unsupported,
)

Envelope = dict[str, Any]


@contextmanager
def answering(status: int, answer: Any) -> Iterator[Client]:
    with (
        stub.serving(lambda method, body: (status, answer)) as broker,
        Client(broker.url) as client,
    ):
        yield client


@pytest.mark.parametrize(
    "kind",
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
def test_every_code_is_its_error(kind: type[MqliteError]) -> None:
    with (
        answering(kind.status, {"code": kind.code, "message": "what happened"}) as client,
        pytest.raises(kind, match=r"^what happened$") as caught,
    ):
        client.stats("q")
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("status", "envelope"),
    [
        (404, {"code": "not_found", "message": "no such path: /x"}),
        (404, {"message": "nothing here"}),
        (405, {"code": "unimplemented", "message": "POST only"}),
    ],
)
def test_an_operation_the_broker_does_not_have(status: int, envelope: Envelope) -> None:
    with answering(status, envelope) as client, pytest.raises(Unsupported):
        client.stats("q")


def test_an_unknown_code_is_told() -> None:
    with (
        answering(418, {"code": "teapot", "message": "short and stout"}) as client,
        pytest.raises(MqliteError, match=r"short and stout \(code teapot, HTTP status 418\)"),
    ):
        client.stats("q")


@pytest.mark.parametrize("status", [200, 404, 502])
@pytest.mark.parametrize("answer", [b"<html>", b"", b"[]", b"\xff"])
def test_an_answer_that_is_no_brokers(status: int, answer: bytes) -> None:
    with answering(status, answer) as client, pytest.raises(MqliteError, match=str(status)):
        client.stats("q")


def test_a_settlement_that_is_not_ok_is_a_lost_lock() -> None:
    with answering(200, {"ok": False}) as client, pytest.raises(LockLost):
        client.complete("q", 1, "t")


@pytest.mark.parametrize("numbers", [None, [], [1, 2]])
def test_a_send_without_its_number_is_an_error(numbers: list[int] | None) -> None:
    with (
        answering(200, {"seq_numbers": numbers}) as client,
        pytest.raises(MqliteError, match="numbers for 1 message"),
    ):
        client.send("q", b"x")


def test_an_empty_batch_may_be_answered_with_null() -> None:
    with answering(200, {"seq_numbers": None}) as client:
        assert client.send_batch("q", []) == []


def test_renewing_one_message_reports_its_deadline_or_falls_back() -> None:
    def modern(method: str, body: dict[str, Any]) -> stub.Answer:
        assert method == "RenewBatch"
        return 200, {"results": [{"seq_number": 1, "ok": True, "locked_until_ms": 5}]}

    def old(method: str, body: dict[str, Any]) -> stub.Answer:
        return (200, {"ok": True}) if method == "Renew" else (404, stub.NO_PATH)

    with stub.serving(modern) as broker, Client(broker.url) as client:
        assert client.renew("q", 1, "t").locked_until_ms == 5
    with stub.serving(old) as broker, Client(broker.url) as client:
        assert client.renew("q", 1, "t").ok
        assert client.renew("q", 1, "t").ok
        assert broker.methods == ["RenewBatch", "Renew", "Renew"]


def test_deleting_looks_the_generation_up_once() -> None:
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

    with stub.serving(behaviour) as broker, Client(broker.url) as client:
        client.delete_queue("q")
        client.delete_queue("q", generation="old")
        with pytest.raises(NotFound):
            client.delete_queue("other")
    sent = [request.body for request in broker.requests if request.method == "DeleteQueue"]
    assert sent == [{"name": "q", "generation": "g7"}, {"name": "q", "generation": "old"}]


def test_optional_fields_are_left_out() -> None:
    answers = {"Send": {"seq_numbers": [1]}, "Receive": {"messages": []}, "Abandon": {"ok": True}}
    with (
        stub.serving(lambda method, body: (200, answers[method])) as broker,
        Client(broker.url) as client,
    ):
        client.send("q", b"")
        client.receive("q")
        client.abandon("q", 1, "t")
    assert [request.body for request in broker.requests] == [
        {"queue": "q", "messages": [{}]},
        {"queue": "q", "max_messages": 1},
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
    call: Callable[[Client], object],
) -> None:
    with (
        stub.serving(stub.empty) as broker,
        Client(broker.url) as client,
        pytest.raises(InvalidArgument),
    ):
        call(client)
    assert broker.requests == []


def test_a_request_over_the_limit_is_refused_here() -> None:
    with Client("http://127.0.0.1:1") as client, pytest.raises(MessageTooLarge):
        client.send("q", bytes(25 * 1024 * 1024))


@pytest.mark.parametrize(
    ("endpoint", "token"),
    [
        ("http://user:secret@h", ""),
        ("http://h?token=secret", ""),
        ("http://h", "secret\nX: y"),
        ("http://h", "secret\u00e9"),
    ],
)
def test_what_a_client_cannot_use(endpoint: str, token: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Client(endpoint, token=token)
    if "?" not in endpoint:
        assert "secret" not in str(caught.value)


def test_a_client_does_not_show_its_token() -> None:
    assert repr(Client("mqlite://secret@h", token="hidden")) == "<Client 'http://h:6754'>"


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with (
        Client(f"http://127.0.0.1:{port}") as client,
        pytest.raises(Unavailable, match=f":{port}: Connection refused") as caught,
    ):
        client.send("q", b"x")
    assert caught.value.reason == "unreachable"


def test_a_closed_client() -> None:
    client = Client("http://127.0.0.1:1")
    client.close()
    with pytest.raises(Closed):
        client.stats("q")


class Stalled:
    """A broker that answers only when it is released."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.reached = threading.Event()
        self.release = threading.Event()

    def __call__(self, method: str, body: dict[str, Any]) -> stub.Answer:
        self.reached.set()
        assert self.release.wait(30)
        return 200, self.answer


def test_closing_breaks_off_a_long_poll() -> None:
    stalled = Stalled({"messages": []})
    with stub.serving(stalled) as broker, ThreadPoolExecutor() as threads:
        client = Client(broker.url)
        poll = threads.submit(client.receive, "q", wait="20s")
        assert stalled.reached.wait(30)
        client.close()
        with pytest.raises(Closed):
            poll.result(30)
        stalled.release.set()


def test_closing_lets_what_else_is_under_way_finish() -> None:
    stalled = Stalled({"moved": 3})
    with stub.serving(stalled) as broker, ThreadPoolExecutor() as threads:
        client = Client(broker.url)
        redrive = threads.submit(client.redrive, "q")
        assert stalled.reached.wait(30)
        client.close()
        stalled.release.set()
        assert redrive.result(30).count == 3

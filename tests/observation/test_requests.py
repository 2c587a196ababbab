"""What a broker counts: requests, credentials, and how long its handlers take."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace

import pytest

import mqlite
from broker.support import Api, exchange, post_bytes
from contract.ways import EPOCH
from mqlite.broker.routes import ROUTES
from mqlite.broker.serve import asgi, serving
from mqlite.clock import ManualClock
from mqlite.errors import InvalidArgument, MqliteError
from mqlite.observation.decoding import decode
from mqlite.observation.schema import Http, Observation
from mqlite.observation.vocabulary import AUTHENTICATION
from observation.looks import broken, events
from patience import eventually, start

ADMIN = "mqk_" + "a" * 64
MONITOR = "monitor-secret"


@pytest.fixture
def url(mq: mqlite.Embedded) -> Iterator[str]:
    with serving(mq, tokens=[ADMIN], monitor_tokens=[MONITOR]) as where:
        yield where


@pytest.fixture
def api(url: str) -> Api:
    return Api(url, ADMIN)


def observed(api: Api) -> Observation:
    reply = api.post("Observe", {})
    assert reply.status == 200
    return decode(reply.raw)


def answered(http: Http) -> dict[tuple[str, str], int]:
    return {(each.rpc, each.code): each.count for each in http.requests if each.count}


def authenticated(http: Http) -> dict[str, int]:
    return {each.outcome: each.count for each in http.authentication if each.count}


def test_requests_are_counted_by_operation_and_code(api: Api) -> None:
    api.send("q", b"x")
    api.send("q", b"x")
    assert api.post("Send", "{").status == 400
    assert api.post("Stats", {"queue": "nowhere"}).status == 404
    assert api.request("GET", "/mqlite.v1.QueueService/Send").status == 405
    http = observed(api).http
    assert answered(http) == {
        ("QueueService/Send", "ok"): 2,
        ("QueueService/Send", "invalid_argument"): 1,
        ("QueueService/Send", "unimplemented"): 1,
        ("QueueService/Stats", "not_found"): 1,
    }
    # The one that asks is answered, and counted, after it was told.
    assert answered(observed(api).http)["AdminService/Observe", "ok"] == 1


def test_what_is_no_operation_is_no_label(api: Api) -> None:
    for path in ("/", "/healthz", "/nowhere", "/mqlite.v1.QueueService/Made%20up"):
        api.request("POST", path)
    exchange(api.url, b"nonsense\r\n\r\n")
    http = observed(api).http
    assert answered(http) == {}
    assert {each.rpc for each in http.requests} == {
        path.removeprefix("/mqlite.v1.") for path in ROUTES
    }


def test_every_operation_and_code_is_there_from_the_start(api: Api) -> None:
    http = observed(api).http
    codes = {each.code for each in http.requests}
    assert {"ok", "internal", "lock_lost", "queue_not_empty", "queue_changed"} <= codes
    assert len(http.requests) == len(ROUTES) * len(codes)
    assert [each.outcome for each in http.authentication] == list(AUTHENTICATION)


def test_an_error_class_of_a_program_is_no_code(mq: mqlite.Embedded) -> None:
    class Own(MqliteError):
        code = "own"

    with serving(mq, tokens=[ADMIN]) as url:
        assert Own.code not in {each.code for each in observed(Api(url, ADMIN)).http.requests}


def test_handlers_are_timed_after_authentication_and_requests_as_a_whole(api: Api) -> None:
    api.send("q", b"x")
    Api(api.url, "wrong").post("Send", {})
    http = observed(api).http
    [handler] = [each for each in http.handlers if each.rpc == "QueueService/Send"]
    assert handler.duration_seconds.count == 1
    assert handler.duration_seconds.sum > 0
    whole = {each.code: each for each in http.requests if each.rpc == "QueueService/Send"}
    assert whole["ok"].duration_seconds >= handler.duration_seconds.sum
    assert whole["unauthenticated"].count == 1
    assert whole["unauthenticated"].duration_seconds > 0


def test_long_polls_wait_in_their_handler(
    api: Api, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = SimpleNamespace(perf_counter=lambda: clock.now() / 1000)
    monkeypatch.setattr("mqlite.broker.app.time", time)
    poll = start(api.receive, "q", wait_time_ms=7000)
    eventually(lambda: clock.waiting > 0)
    clock.advance(7000)
    assert poll.result() == []
    http = observed(api).http
    [handler] = [each for each in http.handlers if each.rpc == "QueueService/Receive"]
    [whole] = [each for each in http.requests if each.rpc == "QueueService/Receive" and each.count]
    assert (handler.duration_seconds.sum, whole.duration_seconds) == (7, 7)


def test_credentials_are_counted_once_a_request(
    api: Api, mq: mqlite.Embedded, clock: ManualClock
) -> None:
    sender = mq.create_key("1" * 32, name="s", permissions=["send"])
    gone = mq.create_key("2" * 32, name="g", permissions=["send"])
    later = EPOCH + timedelta(milliseconds=clock.now() + 1000)
    old = mq.create_key("3" * 32, name="o", permissions=["send"], expires_at=later)
    mq.revoke_key(gone.key.id)
    clock.advance(1000)
    message = {"queue": "q", "messages": [{}]}
    for token, status in (
        (None, 401),
        ("wrong", 401),
        ("mqk_" + "0" * 64, 401),
        (gone.token, 401),
        (old.token, 401),
        (sender.token, 200),
        (MONITOR, 403),
    ):
        assert Api(api.url, token).post("Send", message).status == status
    assert Api(api.url, sender.token).post("Observe", {}).status == 403
    assert exchange(
        api.url, post_bytes("Send", b"{}", "Authorization: Bearer x", "Connection: close")
    )
    Api(api.url, None).request("GET", "/healthz")
    assert authenticated(observed(api).http) == {
        "success": 1,
        "missing": 1,
        "invalid": 3,
        "revoked": 1,
        "expired": 1,
        "permission_denied": 2,
    }


def test_a_key_store_that_fails_lets_nobody_in_and_is_told_apart(
    api: Api, mq: mqlite.Embedded
) -> None:
    sender = mq.create_key("1" * 32, name="s", permissions=["send"])
    path = mq.core.store.location.path
    assert path is not None
    with broken(path, "mqlite_keys"):
        reply = Api(api.url, sender.token).post("Send", {"queue": "q", "messages": [{}]})
        assert reply.status >= 500
        assert observed(Api(api.url, MONITOR)).access == "monitor"
    assert authenticated(observed(api).http)["backend_error"] == 1


def test_what_the_caller_may_do_is_told(api: Api, mq: mqlite.Embedded) -> None:
    manager = mq.create_key("1" * 32, name="m", permissions=["manage"])
    assert observed(api).access == "manage"
    assert observed(Api(api.url, manager.token)).access == "manage"
    assert observed(Api(api.url, MONITOR)).access == "monitor"
    with serving(mq, tokens="off") as url:
        found = observed(Api(url, None))
    assert found.access == "anonymous"
    assert authenticated(found.http) == {}


def test_a_monitor_sees_a_failing_database_with_the_counters_intact(
    api: Api, mq: mqlite.Embedded
) -> None:
    api.send("q", b"x")
    path = mq.core.store.location.path
    assert path is not None
    with broken(path):
        found = observed(Api(api.url, MONITOR))
    assert found.queues is None
    assert found.collection.state == "unavailable"
    assert events(found) == {"enqueued": 1}
    assert answered(found.http) == {("QueueService/Send", "ok"): 1}


def test_metrics_without_authentication_are_refused(mq: mqlite.Embedded) -> None:
    with pytest.raises(InvalidArgument, match="metrics needs authentication"):
        asgi(mq, tokens="off", metrics=True)

"""Access keys of a running broker: their life, their end, and when they cannot be read."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sqlite3
import threading
from collections.abc import Coroutine, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

import mqlite
from broker.keying import ADMIN, AUTH, MONITOR, QUEUE, create, status
from broker.support import TOKEN, TOKENS, Api, Reply
from mqlite.broker.serve import asgi, serving
from mqlite.clock import ManualClock
from mqlite.embedded import Embedded
from mqlite.errors import InvalidArgument, Unavailable
from mqlite.keys import generate_token
from patience import PATIENCE_S, eventually


@pytest.fixture(params=["memory", "file"])
def any_mq(request: pytest.FixtureRequest) -> Embedded:
    name = "mq" if request.param == "memory" else "file_mq"
    return cast("Embedded", request.getfixturevalue(name))


@pytest.fixture
def serve(any_mq: Embedded) -> Iterator[str]:
    any_mq.create_queue("q")
    with serving(any_mq, tokens=TOKENS, monitor_tokens=[MONITOR]) as url:
        yield url


def test_a_key_expires_at_the_very_millisecond(
    any_mq: Embedded, clock: ManualClock, serve: str
) -> None:
    made = create(any_mq, "listen", expires_at="1m")
    clock.set(made.key.expires_at_ms - 1)
    assert status(serve, made.token) == 200
    clock.advance(1)
    assert status(serve, made.token) == 401
    clock.advance(-1)
    assert status(serve, made.token) == 200


def test_a_revoked_key_is_refused_by_the_next_request(any_mq: Embedded, serve: str) -> None:
    for _ in range(20):
        made = create(any_mq, "listen")
        assert status(serve, made.token) == 200
        any_mq.revoke_key(made.key.id)
        assert status(serve, made.token) == 401


def test_a_key_that_another_connection_revokes_is_refused_by_the_next_request(
    file_mq: Embedded, tmp_path: Path
) -> None:
    file_mq.create_queue("q")
    made = create(file_mq, "listen")
    with serving(file_mq, tokens=TOKENS) as url:
        assert status(url, made.token) == 200
        with closing(sqlite3.connect(tmp_path / "mq.db", isolation_level=None)) as other:
            other.execute("UPDATE mqlite_keys SET revoked_at = 1")
        assert status(url, made.token) == 401


def test_a_poll_that_was_let_in_may_finish_and_settling_needs_a_key(
    any_mq: Embedded, serve: str
) -> None:
    made = create(any_mq, "listen")
    api = Api(serve, made.token)
    received: list[dict[str, Any]] = []
    poll = threading.Thread(target=lambda: received.extend(api.receive("q", wait_time_ms=20_000)))
    poll.start()
    waiters = any_mq.core.store.waiters
    eventually(lambda: waiters.waiting(1) == 1)
    any_mq.revoke_key(made.key.id)
    any_mq.send("q", "x")
    poll.join(PATIENCE_S)
    [message] = received
    lease = {key: message[key] for key in ("seq_number", "lock_token")}
    for verb in ("Renew", "Complete"):
        assert api.post(verb, {"queue": "q", **lease}).status == 401
    assert Api(serve).post("Complete", {"queue": "q", **lease}).status == 200


def test_keys_that_a_revoked_key_made_stay(any_mq: Embedded, serve: str) -> None:
    issuer = create(any_mq, "manage")
    body = {"id": mqlite.generate_key_id(), "name": "n", "permissions": ["listen"]}
    made = Api(serve, issuer.token).post_to(f"{AUTH}CreateKey", body).json
    revoke = {"id": issuer.key.id}
    assert Api(serve, issuer.token).post_to(f"{AUTH}RevokeKey", revoke).json == {"ok": True}
    assert status(serve, issuer.token) == 401
    assert status(serve, made["token"]) == 200


def test_a_configured_token_is_an_administrator_whatever_its_key_says(mq: Embedded) -> None:
    made = create(mq, "send", expires_at="1s")
    mq.revoke_key(made.key.id)
    with serving(mq, tokens=[made.token]) as url:
        assert status(url, made.token, f"{ADMIN}ListQueues") == 200
    with serving(mq, tokens=TOKENS, monitor_tokens=[made.token]) as url:
        assert status(url, made.token, f"{ADMIN}ListQueues") == 403


def test_monitors_need_administrators_and_tokens_of_their_own(mq: Embedded) -> None:
    with pytest.raises(InvalidArgument, match="monitor_tokens needs authentication"):
        asgi(mq, tokens="off", monitor_tokens=["m"])
    with pytest.raises(InvalidArgument, match="share") as shared:
        asgi(mq, tokens=["a", "secret"], monitor_tokens=["secret "])
    assert "secret" not in str(shared.value)
    with pytest.raises(InvalidArgument, match="monitor_tokens"):
        asgi(mq, tokens=["a"], monitor_tokens="secret")
    asgi(mq, tokens="off", monitor_tokens=["", " "])


# When the keys cannot be read


def test_a_key_table_that_is_gone_lets_nobody_in(
    file_mq: Embedded, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file_mq.create_queue("q")
    made = create(file_mq, "manage")
    with serving(file_mq, tokens=TOKENS, monitor_tokens=[MONITOR]) as url:
        with closing(sqlite3.connect(tmp_path / "mq.db", isolation_level=None)) as other:
            other.execute("DROP TABLE mqlite_keys")
        reply = Api(url, made.token).post("Stats", {"queue": "q"})
        assert (reply.status, reply.code) == (500, "internal")
        assert status(url, generate_token()) == 500
        assert status(url, "mqk_wrong") == 401
        assert status(url, TOKEN) == 200
        assert status(url, MONITOR) == 403
    assert "no such table" in caplog.text
    assert made.token not in caplog.text


def test_a_database_that_does_not_answer_lets_nobody_in(
    mq: Embedded, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create(mq, "manage")

    async def fail(operation: object) -> None:
        raise Unavailable("the storage failed", reason="storage")

    with monkeypatch.context() as broken:
        broken.setattr(mq.core.store, "seek_async", fail)
        reply = Api(url, made.token).post("ListQueues", b"")
        assert reply.status == 503
        assert reply.json == {
            "code": "unavailable",
            "message": "the storage failed",
            "reason": "storage",
        }
        with (
            mqlite.connect(url, token=made.token, retry_for=0) as client,
            pytest.raises(Unavailable) as refused,
        ):
            client.list_queues()
        assert refused.value.reason == "storage"
        assert status(url, TOKEN, f"{ADMIN}ListQueues") == 200
    assert status(url, made.token, f"{ADMIN}ListQueues") == 200


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_closed_queue_lets_nobody_in(kind: str, tmp_path: Path) -> None:
    mq = mqlite.open(":memory:" if kind == "memory" else tmp_path / "mq.db")
    token = create(mq, "manage").token
    broker = asgi(mq, tokens=TOKENS)
    mq.close()
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}"}

    async def send(event: Any) -> None:
        sent.append(event)

    headers = [(b"authorization", f"Bearer {token}".encode())]
    scope = {"type": "http", "method": "POST", "path": f"{ADMIN}Status", "headers": headers}
    asyncio.run(cast("Coroutine[Any, Any, None]", broker(scope, receive, send)))
    assert sent[0]["status"] == 503


# AuthService on the wire


def post(url: str, method: str, body: bytes | dict[str, Any]) -> Reply:
    return Api(url).post_to(f"{AUTH}{method}", body)


def test_the_answers_have_the_documented_fields(url: str, clock: ManualClock) -> None:
    id = mqlite.generate_key_id()
    made = post(url, "CreateKey", {"id": id, "name": "n", "permissions": ["listen", "send"]}).json
    assert list(made) == ["key", "token"]
    assert made["key"] == {
        "id": id,
        "name": "n",
        "permissions": ["send", "listen"],
        "created_at_ms": clock.now(),
        "expires_at_ms": 0,
        "revoked_at_ms": 0,
    }
    assert post(url, "ListKeys", {}).json == {"keys": [made["key"]]}
    other = {"id": "f" * 32, "name": "n", "permissions": ["manage"], "expires_at_ms": 2**53}
    assert post(url, "CreateKey", other).json["key"]["expires_at_ms"] == 2**53
    page = post(url, "ListKeys", {"limit": 1, "sort": "", "after_id": ""}).json
    assert (len(page["keys"]), page["next_after_id"]) == (1, min(id, "f" * 32))
    assert post(url, "RevokeKey", {"id": id}).json == {"ok": True}
    assert post(url, "RevokeKey", {"id": id}).json == {"ok": True}


@pytest.mark.parametrize(
    ("method", "body", "field"),
    [
        ("CreateKey", {}, "id"),
        ("CreateKey", {"id": "x" * 1_000_000}, "id"),
        ("CreateKey", {"token": "mqk_mine"}, "token"),
        ("CreateKey", {"id": "0" * 32, "permissions": ["send"]}, "name"),
        ("CreateKey", {"id": "0" * 32, "name": "n"}, "permissions"),
        ("CreateKey", {"id": "0" * 32, "name": "n", "permissions": "send"}, "permissions"),
        ("CreateKey", {"id": "0" * 32, "name": "n", "permissions": ["monitor"]}, "permissions"),
        ("CreateKey", {"id": "0" * 32, "name": "n", "permissions": [None]}, "permissions"),
        ("CreateKey", b'{"id": "' + b"0" * 32 + b'", "name": "\xff"}', "UTF-8"),
        *(
            (
                "CreateKey",
                {"id": "0" * 32, "name": "n", "permissions": ["send"], "expires_at_ms": expiry},
                "expires_at_ms",
            )
            for expiry in (-1, 1, 2**63, "1", 1.5, True)
        ),
        ("ListKeys", {"limit": -1}, "limit"),
        ("ListKeys", {"limit": 1001}, "limit"),
        ("ListKeys", {"limit": 2**63 - 1}, "limit"),
        ("ListKeys", {"sort": "created_asc"}, "sort"),
        ("ListKeys", {"after_id": "0" * 1_000_000}, "after_id"),
        ("ListKeys", {"after_id": "0" * 31 + "\u0660"}, "after_id"),
        ("ListKeys", {"after_id": "' OR 1=1 --"}, "after_id"),
        ("ListKeys", {"after_id": "0" * 32, "sort": "created_desc"}, "after_id"),
        ("ListKeys", b"", "empty"),
        ("RevokeKey", {}, "id"),
        ("RevokeKey", {"id": None}, "id"),
        ("RevokeKey", {"id": "0" * 33}, "id"),
    ],
)
def test_bad_requests_name_the_field(
    shared_url: str, method: str, body: bytes | dict[str, Any], field: str
) -> None:
    reply = post(shared_url, method, body)
    assert (reply.status, reply.code) == (400, "invalid_argument")
    assert field in reply.json["message"]
    assert len(reply.raw) < 2000
    assert post(shared_url, "ListKeys", {}).json == {"keys": []}


def test_conflict_and_absence(url: str) -> None:
    key = {"id": "0" * 32, "name": "n", "permissions": ["send"]}
    token = post(url, "CreateKey", key).json["token"]
    reply = post(url, "CreateKey", key)
    assert (reply.status, reply.code) == (409, "key_conflict")
    assert token.encode() not in reply.raw
    reply = post(url, "RevokeKey", {"id": "f" * 32})
    assert (reply.status, reply.code) == (404, "not_found")
    assert not reply.json["message"].startswith("no such path")


def test_no_secret_reaches_the_log(mq: Embedded, caplog: pytest.LogCaptureFixture) -> None:
    secrets = [TOKEN, MONITOR]
    with (
        caplog.at_level(logging.DEBUG),
        serving(mq, tokens=TOKENS, monitor_tokens=[MONITOR]) as url,
    ):
        for number in range(3):
            body = {"id": f"{number:032x}", "name": "n", "permissions": ["send"]}
            secrets.append(post(url, "CreateKey", body).json["token"])
            post(url, "CreateKey", body)
        post(url, "RevokeKey", {"id": "0" * 32})
        for secret in secrets:
            for path in (f"{QUEUE}Send", f"{ADMIN}Status", "/nope"):
                Api(url, secret).request("POST", path, b"{}")
                Api(url, f"{secret}0").request("POST", path, b"{}")
    assert f"CreateKey status=200 key={'0' * 32}" in caplog.text
    logged = caplog.text + "".join(repr(vars(record)) for record in caplog.records)
    for secret in secrets:
        assert secret not in logged
        assert hashlib.sha256(secret.encode()).hexdigest() not in logged

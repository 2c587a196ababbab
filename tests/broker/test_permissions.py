"""Who may do what: every route with every kind of credential."""

from __future__ import annotations

from collections.abc import Iterator
from http.client import HTTPMessage
from typing import Any, Final

import pytest

import mqlite
from broker.keying import ADMIN, AUTH, MONITOR, QUEUE, create
from broker.support import TOKEN, TOKENS, Api, Reply
from mqlite.broker.routes import ROUTES
from mqlite.broker.serve import serving
from mqlite.clock import ManualClock
from mqlite.embedded import Embedded
from mqlite.keys import generate_token

NEEDED: Final = {
    "send": ("Send", "Schedule", "Cancel"),
    "listen": (
        "Receive",
        "ReceiveDeferred",
        "Peek",
        "Stats",
        "Complete",
        "CompleteBatch",
        "Abandon",
        "Release",
        "Reject",
        "Defer",
        "Renew",
        "RenewBatch",
    ),
}
HOLDERS: Final = {
    "send": {"send key", "send and listen key", "manage key", "administrator"},
    "listen": {"listen key", "send and listen key", "manage key", "administrator"},
    "manage": {"manage key", "administrator"},
    "observe": {"manage key", "administrator", "monitor"},
}
NOBODY: Final = (
    "no token",
    "an empty header",
    "a wrong token",
    "an unknown key",
    "a bare token",
    "another scheme",
    "the scheme in lower case",
    "a key in upper case",
    "a longer key",
    "a shorter key",
    "two headers",
    "an expired key",
    "a revoked key",
    "an expired manage key",
    "a revoked manage key",
)
KNOWN: Final = (
    "send key",
    "listen key",
    "send and listen key",
    "manage key",
    "administrator",
    "monitor",
)


def needed(path: str) -> str:
    """The permission that the documents want for a route. Fails for a route they do not name."""
    service, _, method = path.removeprefix("/mqlite.v1.").partition("/")
    if method == "Observe":
        return "observe"
    if service in ("AdminService", "AuthService"):
        return "manage"
    assert service == "QueueService"
    [permission] = [name for name, methods in NEEDED.items() if method in methods]
    return permission


def credentials(mq: Embedded, clock: ManualClock) -> dict[str, HTTPMessage]:
    """The headers of each kind of credential."""

    def lines(*values: str) -> HTTPMessage:
        headers = HTTPMessage()
        for value in values:
            headers.add_header("Authorization", value)
        return headers

    expired = [create(mq, *them, expires_at="1s") for them in (("send", "listen"), ("manage",))]
    clock.advance(1000)
    revoked = [create(mq, *them) for them in (("send", "listen"), ("manage",))]
    for made in revoked:
        mq.revoke_key(made.key.id)
    send, listen = create(mq, "send").token, create(mq, "listen").token
    both, manage = create(mq, "send", "listen").token, create(mq, "manage").token
    return {
        "no token": lines(),
        "an empty header": lines(""),
        "a wrong token": lines("Bearer mqk_wrong"),
        "an unknown key": lines(f"Bearer {generate_token()}"),
        "a bare token": lines(manage),
        "another scheme": lines(f"Basic {manage}"),
        "the scheme in lower case": lines(f"bearer {manage}"),
        "a key in upper case": lines(f"Bearer mqk_{manage[4:].upper()}"),
        "a longer key": lines(f"Bearer {manage}0"),
        "a shorter key": lines(f"Bearer {manage[:-1]}"),
        "two headers": lines(f"Bearer {manage}", f"Bearer {manage}"),
        "an expired key": lines(f"Bearer {expired[0].token}"),
        "an expired manage key": lines(f"Bearer {expired[1].token}"),
        "a revoked key": lines(f"Bearer {revoked[0].token}"),
        "a revoked manage key": lines(f"Bearer {revoked[1].token}"),
        "send key": lines(f"Bearer {send}"),
        "listen key": lines(f"Bearer {listen}"),
        "send and listen key": lines(f"Bearer {both}"),
        "manage key": lines(f"Bearer {manage}"),
        "administrator": lines(f"Bearer {TOKEN}"),
        "monitor": lines(f"Bearer {MONITOR}"),
    }


class Gate:
    """A broker, and a request with any of the credentials."""

    def __init__(self, url: str, known: dict[str, HTTPMessage]) -> None:
        self.api = Api(url)
        self.known = known

    def answer(
        self, credential: str, path: str, method: str = "POST", body: bytes = b"{}"
    ) -> Reply:
        return self.api.request(method, path, body, self.known[credential])

    def outcome(self, credential: str, path: str, method: str = "POST") -> str | int:
        """The code of a refusal of the credential; `let in`; else the status."""
        reply = self.answer(credential, path, method)
        if reply.status in (401, 403):
            return reply.code
        return "let in" if path in ROUTES else reply.status


@pytest.fixture(scope="module")
def gate() -> Iterator[Gate]:
    clock = ManualClock()
    with mqlite.open(":memory:", clock=clock) as mq:
        known = credentials(mq, clock)
        with serving(mq, tokens=TOKENS, monitor_tokens=[MONITOR]) as url:
            yield Gate(url, known)


@pytest.fixture(scope="module")
def open_gate() -> Iterator[Gate]:
    """Authentication is off."""
    clock = ManualClock()
    with mqlite.open(":memory:", clock=clock) as mq:
        known = credentials(mq, clock)
        with serving(mq, tokens="off") as url:
            yield Gate(url, known)


def test_the_credentials_are_those_of_the_table(gate: Gate) -> None:
    assert set(gate.known) == {*NOBODY, *KNOWN}


@pytest.mark.parametrize("path", ROUTES)
def test_every_route_with_every_credential(gate: Gate, path: str) -> None:
    holders = HOLDERS[needed(path)]
    expected: dict[str, str | int] = dict.fromkeys(NOBODY, "unauthenticated")
    expected |= {who: "let in" if who in holders else "permission_denied" for who in KNOWN}
    assert {who: gate.outcome(who, path) for who in gate.known} == expected


def test_a_refusal_names_what_is_missing(gate: Gate, open_gate: Gate) -> None:
    keys = "/mqlite.v1.AuthService/ListKeys"
    off = "access keys cannot be managed while authentication is off"
    for who, path, missing in (
        ("listen key", "/mqlite.v1.QueueService/Send", "this needs the permission send"),
        ("send key", keys, "this needs the permission manage"),
        ("monitor", keys, "this needs the permission manage"),
    ):
        assert gate.answer(who, path).json["message"] == missing
    for who in ("no token", "send key", "manage key"):
        assert open_gate.answer(who, keys).json["message"] == off


@pytest.mark.parametrize("path", ROUTES)
def test_without_authentication_all_is_open_but_the_keys(open_gate: Gate, path: str) -> None:
    expected = "permission_denied" if path.startswith(AUTH) else "let in"
    assert {open_gate.outcome(who, path) for who in open_gate.known} == {expected}


@pytest.mark.parametrize(
    ("path", "method", "without", "known"),
    [
        ("/", "GET", 200, 200),
        ("/healthz", "GET", 200, 200),
        ("/ui", "GET", "unauthenticated", 404),
        ("/ui/", "GET", "unauthenticated", 404),
        ("/metrics", "GET", "unauthenticated", 404),
        ("/nope", "POST", "unauthenticated", 404),
        (f"{AUTH}Nope", "POST", "unauthenticated", 404),
    ],
)
def test_what_is_no_operation(
    gate: Gate, open_gate: Gate, path: str, method: str, without: Any, known: int
) -> None:
    outcomes = {who: gate.outcome(who, path, method) for who in gate.known}
    assert outcomes == dict.fromkeys(NOBODY, without) | dict.fromkeys(KNOWN, known)
    assert {open_gate.outcome(who, path, method) for who in open_gate.known} == {known}


def test_only_who_may_send_sends(gate: Gate) -> None:
    """A message alone to a queue that is known takes a way of its own through the broker."""
    gate.answer("administrator", f"{ADMIN}CreateQueue", body=b'{"name": "jobs"}')
    body = b'{"queue": "jobs", "messages": [{"body": "eA=="}]}'
    statuses = {who: gate.answer(who, f"{QUEUE}Send", body=body).status for who in gate.known}
    assert statuses == (
        dict.fromkeys(NOBODY, 401) | dict.fromkeys(KNOWN, 403) | dict.fromkeys(HOLDERS["send"], 200)
    )
    stats = gate.answer("administrator", f"{QUEUE}Stats", body=b'{"queue": "jobs"}').json
    assert stats["total"] == len(HOLDERS["send"])


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_permission_is_checked_before_the_method(gate: Gate, method: str) -> None:
    assert gate.answer("send key", f"{ADMIN}Status", method).status == 403
    assert gate.answer("manage key", f"{ADMIN}Status", method).status == 405


def test_a_refusal_names_the_permission(gate: Gate, open_gate: Gate) -> None:
    for path, text in (
        (f"{QUEUE}Send", "permission send"),
        (f"{QUEUE}Stats", "permission listen"),
        (f"{ADMIN}Status", "permission manage"),
        (f"{AUTH}ListKeys", "permission manage"),
    ):
        assert text in gate.answer("monitor", path).json["message"]
    assert "authentication" in open_gate.answer("no token", f"{AUTH}ListKeys").json["message"]


def test_what_is_wrong_with_a_key_is_not_told(gate: Gate) -> None:
    replies = {
        gate.answer(who, f"{QUEUE}Stats").raw
        for who in ("a wrong token", "an unknown key", "an expired key", "a revoked key")
    }
    assert len(replies) == 1

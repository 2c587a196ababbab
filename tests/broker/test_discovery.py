"""What anybody may ask: the card, pinned, and the health check."""

from __future__ import annotations

import mqlite
from broker.support import Api, Reply
from mqlite.broker.routes import ROUTES
from mqlite.links import DOCS_URL

ENDPOINTS = [
    *(
        f"/mqlite.v1.QueueService/{name}"
        for name in [
            "Send",
            "Receive",
            "Complete",
            "CompleteBatch",
            "RenewBatch",
            "Abandon",
            "Reject",
            "Defer",
            "ReceiveDeferred",
            "Renew",
            "Schedule",
            "Cancel",
            "Peek",
            "Stats",
        ]
    ),
    *(
        f"/mqlite.v1.AdminService/{name}"
        for name in [
            "CreateQueue",
            "Subscribe",
            "ListQueues",
            "ListSubscriptions",
            "TestFilter",
            "Redrive",
            "Purge",
            "Status",
            "DeleteQueue",
            "Unsubscribe",
            "PauseQueue",
            "ResumeQueue",
        ]
    ),
    "/mqlite.v1.QueueService/Release",
    "/mqlite.v1.AdminService/Observe",
    *(f"/mqlite.v1.AuthService/{name}" for name in ["CreateKey", "ListKeys", "RevokeKey"]),
]


def card(url: str) -> Reply:
    return Api(url, None).request("GET", "/")


def test_the_card(shared_url: str) -> None:
    reply = card(shared_url)
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    assert reply.raw.endswith(b"}\n")
    found = reply.json
    assert list(found) == [
        "name",
        "description",
        "version",
        "status",
        "auth",
        "docs",
        "endpoints",
        "health",
    ]
    assert found["description"].count("\n") == 0
    del found["description"]
    assert found == {
        "name": "mqlite",
        "version": mqlite.__version__,
        "status": "ok",
        "auth": "bearer",
        "docs": DOCS_URL,
        "endpoints": ENDPOINTS,
        "health": "/healthz",
    }


def test_the_card_lists_exactly_what_is_served() -> None:
    assert list(ROUTES) == ENDPOINTS


def test_health(shared_url: str) -> None:
    reply = Api(shared_url, None).request("GET", "/healthz")
    assert (reply.status, reply.raw) == (200, b"ok")
    assert reply.headers["content-type"].startswith("text/plain")


def test_head_answers_without_a_body(shared_url: str) -> None:
    reply = Api(shared_url, None).request("HEAD", "/")
    assert (reply.status, reply.raw) == (200, b"")
    assert int(reply.headers["content-length"]) == len(card(shared_url).raw)


def test_no_answer_names_the_server(shared_url: str) -> None:
    assert "server" not in card(shared_url).headers

"""The broker inside another application, under a prefix and without a lifespan."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from broker.support import TOKEN, Api
from mqlite.broker.asgi import Event, Receive, Scope, Send
from mqlite.broker.serve import asgi
from mqlite.embedded import Embedded


class Running(uvicorn.Server):
    """A plain uvicorn in a thread."""

    def __init__(self, app: Any) -> None:
        config = uvicorn.Config(app, port=0, lifespan="off", log_config=None, ws="none")
        super().__init__(config)
        self.up = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.up.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}"


@contextmanager
def running(app: Any) -> Iterator[str]:
    server = Running(app)
    thread = threading.Thread(target=server.run)
    thread.start()
    assert server.up.wait(10)
    yield server.url
    server.should_exit = True
    thread.join()


async def home(request: Any) -> PlainTextResponse:
    return PlainTextResponse("home")


@pytest.fixture
def host(mq: Embedded) -> Iterator[str]:
    allow = Middleware(CORSMiddleware, allow_origins=["*"])
    routes = [Route("/", home), Mount("/mq", app=asgi(mq, tokens=[TOKEN]))]
    with running(Starlette(routes=routes, middleware=[allow])) as url:
        yield url


def test_operations_under_the_prefix(host: str) -> None:
    def call(operation: str, body: bytes) -> Any:
        reply = Api(host).request("POST", f"/mq/mqlite.v1.{operation}", body)
        assert reply.status == 200, reply.raw
        return reply.json

    call("AdminService/CreateQueue", b'{"name":"q"}')
    call("QueueService/Send", b'{"queue":"q","messages":[{"body":"aGk="}]}')
    received = call("QueueService/Receive", b'{"queue":"q","wait_time_ms":20000}')
    assert received["messages"][0]["body"] == "aGk="
    assert Api(host, None).request("GET", "/").raw == b"home"


def test_what_is_open_and_what_is_not(host: str) -> None:
    anybody = Api(host, None)
    assert anybody.request("GET", "/mq/healthz").raw == b"ok"
    assert anybody.request("GET", "/mq/nope").status == 401
    assert anybody.request("POST", "/mq/mqlite.v1.AdminService/Status").status == 401
    assert Api(host).request("GET", "/mq/nope").json["message"] == "no such path: /nope"


def test_the_cards_paths_resolve_against_the_origin(host: str) -> None:
    card = Api(host, None).request("GET", "/mq/").json
    assert card["health"] == "/mq/healthz"
    assert card["endpoints"][0] == "/mq/mqlite.v1.QueueService/Send"


def test_a_middleware_may_add_headers(host: str) -> None:
    for _ in range(2):
        reply = Api(host, None).request("GET", "/mq/healthz", headers={"Origin": "http://a"})
        assert reply.headers["access-control-allow-origin"] == "*"


def test_a_closed_queue_is_unavailable(host: str, mq: Embedded) -> None:
    mq.close()
    reply = Api(host).request("POST", "/mq/mqlite.v1.AdminService/Status")
    assert (reply.status, reply.code) == (503, "unavailable")
    assert "retry-after" not in reply.headers
    assert Api(host).request("GET", "/mq/healthz").status == 200


@pytest.mark.parametrize(
    ("path", "prefix", "status"),
    [
        ("/healthz", "", 200),
        ("/mq/healthz", "/mq", 200),
        ("/mq/healthz", "/mq/", 200),
        ("/healthz", "/mq", 200),  # a server that takes the prefix off
        ("/mq", "/mq", 200),
        ("/mqlite/healthz", "/mq", 401),
    ],
)
def test_prefixes(mq: Embedded, path: str, prefix: str, status: int) -> None:
    scope = {"type": "http", "method": "GET", "path": path, "root_path": prefix, "headers": []}
    assert drive(asgi(mq, tokens=[TOKEN]), scope)[0]["status"] == status


def test_a_lifespan_is_answered_where_there_is_one(mq: Embedded) -> None:
    events = drive(
        asgi(mq, tokens="off"), {"type": "lifespan"}, "lifespan.startup", "lifespan.shutdown"
    )
    assert [event["type"] for event in events] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]


def test_a_websocket_is_closed(mq: Embedded) -> None:
    (event,) = drive(asgi(mq, tokens="off"), {"type": "websocket"}, "websocket.connect")
    assert event["type"] == "websocket.close"


def drive(app: Any, scope: Scope, *events: str) -> list[Event]:
    """What an application answers to these events."""
    pending = list(events)
    sent: list[Event] = []

    async def receive() -> Event:
        return {"type": pending.pop(0)}

    async def send(event: Event) -> None:
        sent.append(event)

    async def run(receive: Receive, send: Send) -> None:
        await app(scope, receive, send)

    asyncio.run(run(receive, send))
    return sent

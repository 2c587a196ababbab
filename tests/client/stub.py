"""A broker made of canned answers, which remembers what it was asked."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Answer = tuple[int, Any]
Behaviour = Callable[[str, dict[str, Any]], Answer]


class Request(NamedTuple):
    path: str
    token: str | None
    body: dict[str, Any]

    @property
    def method(self) -> str:
        return self.path.rpartition("/")[2]


class StubBroker:
    """Answers `POST .../<Service>/<Method>` by `behaviour(method, body)`."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.requests: list[Request] = []
        self.url = ""

    @property
    def methods(self) -> list[str]:
        return [request.method for request in self.requests]

    @property
    def last(self) -> Request:
        return self.requests[-1]


@contextmanager
def serving(behaviour: Behaviour, *, tls: ssl.SSLContext | None = None) -> Iterator[StubBroker]:
    stub = StubBroker(behaviour)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            request = Request(self.path, self.headers["Authorization"], body)
            stub.requests.append(request)
            status, answer = stub.behaviour(request.method, body)
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    stub.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def empty(method: str, body: dict[str, Any]) -> Answer:
    """A broker that holds nothing."""
    answers: dict[str, Any] = {
        "ListQueues": {"queues": []},
        "ListSubscriptions": {"subscriptions": []},
        "Receive": {"messages": []},
        "Peek": {"messages": []},
    }
    return (200, answers[method]) if method in answers else (404, NO_PATH)


NO_PATH = {"code": "not_found", "message": "no such path: /x"}

"""Clients that hide nothing, and what the tests of the broker share."""

from __future__ import annotations

import base64
import http.client
import json
import socket
from contextlib import closing
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from patience import PATIENCE_S

TOKEN = "mqk_test"
TOKENS = (TOKEN, "another")


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def code(self) -> str:
        return str(self.json["code"])


class Api:
    """A client that hides nothing; a connection for every request."""

    def __init__(self, url: str, token: str | None = TOKEN) -> None:
        self.url = url
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def request(
        self,
        method: str,
        path: str,
        body: bytes | str | None = None,
        headers: dict[str, str] | http.client.HTTPMessage | None = None,
    ) -> Reply:
        sent = self.headers if headers is None else headers
        with closing(http.client.HTTPConnection(*address(self.url), timeout=30)) as connection:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, headers, answer.read())

    def post(self, operation: str, body: bytes | str | dict[str, Any]) -> Reply:
        """`operation` without its service: `Send`, `CreateQueue`."""
        return self.post_to(path_of(operation), body)

    def post_to(self, path: str, body: bytes | str | dict[str, Any]) -> Reply:
        return self.request("POST", path, json.dumps(body) if isinstance(body, dict) else body)

    def ok(self, operation: str, **fields: Any) -> Any:
        reply = self.post(operation, fields)
        assert reply.status == 200, reply.raw
        return reply.json

    def send(self, queue: str, *bodies: bytes, **fields: Any) -> list[int]:
        messages = [{"body": base64.b64encode(body).decode()} for body in bodies]
        numbers: list[int] = self.ok("Send", queue=queue, messages=messages, **fields)[
            "seq_numbers"
        ]
        return numbers

    def receive(self, queue: str, **fields: Any) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.ok("Receive", queue=queue, **fields)["messages"]
        return messages


QUEUE_OPERATIONS = frozenset(
    [
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
        "Release",
    ]
)


def path_of(operation: str) -> str:
    service = "QueueService" if operation in QUEUE_OPERATIONS else "AdminService"
    return f"/mqlite.v1.{service}/{operation}"


def address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def connect(url: str) -> socket.socket:
    return socket.create_connection(address(url), timeout=PATIENCE_S)


def read_all(connection: socket.socket) -> bytes:
    """What arrives until the broker closes."""
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    return received


def exchange(url: str, sent: bytes) -> bytes:
    """Everything the broker answers to these bytes; they should make it close."""
    with connect(url) as connection:
        connection.sendall(sent)
        return read_all(connection)


def post_bytes(operation: str, body: bytes, *more: str, token: str = TOKEN) -> bytes:
    """The bytes of a request, with more header lines."""
    lines = [
        f"POST {path_of(operation)} HTTP/1.1",
        "Host: test",
        f"Authorization: Bearer {token}",
        *more,
    ]
    if not any(line.lower().startswith("transfer-encoding") for line in more):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

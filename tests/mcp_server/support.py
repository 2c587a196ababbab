"""An agent that calls tools, and what it may ask of a broker."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import anyio
from mcp import Client
from mcp.types import CallToolResult, TextContent

from client.stub import Answer
from mqlite.client.target import Target
from mqlite.mcp.broker import Broker
from mqlite.mcp.server import server

TOKEN = "mqk_for_the_tests_of_mcp"

EXAMPLES: dict[str, dict[str, Any]] = {
    "observe": {},
    "list_queues": {},
    "create_queue": {"name": "q"},
    "send": {"queue": "q", "body": "hello", "message_id": "m1", "group_id": "g1"},
    "receive": {"queue": "q", "max_messages": 7, "wait_time_ms": 50},
    "complete": {"queue": "q", "seq_number": 5, "lock_token": "t"},
    "abandon": {"queue": "q", "seq_number": 5, "lock_token": "t", "delay_ms": 1500},
    "reject": {"queue": "q", "seq_number": 5, "lock_token": "t", "reason": "bad"},
    "renew": {"queue": "q", "seq_number": 5, "lock_token": "t"},
    "defer": {"queue": "q", "seq_number": 5, "lock_token": "t"},
    "receive_deferred": {"queue": "q", "seq_numbers": [5, 6]},
    "peek": {"queue": "q", "state": "active", "max": 3},
    "stats": {"queue": "q"},
    "redrive": {"queue": "q", "max": 4},
    "purge": {"queue": "q", "max": 4},
    "create_key": {
        "id": "e734810a9f634d75bd8a029c1f7e5062",
        "name": "producer",
        "permissions": ["send"],
        "expires_at_ms": 4102444800000,
    },
    "list_keys": {"after_id": "e7" * 16, "limit": 10, "sort": "id_asc"},
    "revoke_key": {"id": "e734810a9f634d75bd8a029c1f7e5062"},
}
"""Every tool with every argument that it takes in one call."""


class Result(NamedTuple):
    failed: bool
    text: str

    @property
    def json(self) -> Any:
        assert not self.failed, self.text
        return json.loads(self.text)

    @property
    def code(self) -> str:
        assert self.failed, self.text
        start, code, _ = self.text.split(": ", 2)
        assert start == "error"
        return code


class Agent:
    """Calls tools, by the SDK's client, of a server in this process."""

    def __init__(self, url: str, token: str = TOKEN, **options: Any) -> None:
        self.broker = Broker(Target(url, token, options))

    def call(self, tool: str, /, **arguments: Any) -> Result:
        async def exchange() -> Result:
            async with Client(server(self.broker)) as client:
                return result(await client.call_tool(tool, arguments))

        return anyio.run(exchange)

    def ok(self, tool: str, /, **arguments: Any) -> Any:
        return self.call(tool, **arguments).json


def result(answer: CallToolResult) -> Result:
    [content] = answer.content
    assert isinstance(content, TextContent)
    assert answer.structured_content is None
    return Result(answer.is_error, content.text)


def accepting(method: str, body: dict[str, Any]) -> Answer:
    """A broker without queues that is content with everything."""
    return 200, {"queues": []} if method == "ListQueues" else {}

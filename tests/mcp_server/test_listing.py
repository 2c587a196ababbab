"""What a host is told of the server before any call."""

from __future__ import annotations

import anyio
import pytest
from mcp import Client
from mcp.types import Tool

import mqlite
from docs import pages
from mqlite.mcp.server import server
from mqlite.mcp.tools import INSTRUCTIONS, TOOLS

from .support import Agent

PAGE = "docs/mcp.md"
LEASE = ["queue", "seq_number", "lock_token"]
DOCUMENTED: dict[str, tuple[list[str], list[str]]] = {
    "observe": ([], []),
    "list_queues": ([], []),
    "create_queue": (["name"], []),
    "send": (["queue", "body"], ["message_id", "group_id"]),
    "receive": (["queue"], ["max_messages", "wait_time_ms"]),
    "complete": (LEASE, []),
    "abandon": (LEASE, ["delay_ms"]),
    "reject": (LEASE, ["reason"]),
    "renew": (LEASE, []),
    "defer": (LEASE, []),
    "receive_deferred": (["queue", "seq_numbers"], []),
    "peek": (["queue"], ["state", "max"]),
    "stats": (["queue"], []),
    "redrive": (["queue"], ["max"]),
    "purge": (["queue"], ["max", "all"]),
    "create_key": (["id", "name", "permissions"], ["expires_at_ms"]),
    "list_keys": ([], ["after_id", "limit", "sort"]),
    "revoke_key": (["id"], []),
}


@pytest.fixture(scope="module")
def listed() -> dict[str, Tool]:
    """The tools as a client gets them, without a broker."""

    async def exchange() -> dict[str, Tool]:
        async with Client(server(Agent("http://127.0.0.1:1").broker)) as client:
            assert client.server_info is not None
            assert client.server_info.name == "mqlite-mcp"
            assert client.server_info.version == mqlite.__version__
            assert client.instructions == INSTRUCTIONS
            assert client.server_capabilities.model_dump(exclude_none=True).keys() == {"tools"}
            return {tool.name: tool for tool in (await client.list_tools()).tools}

    return anyio.run(exchange)


def test_the_tools_are_those_of_mqlite(listed: dict[str, Tool]) -> None:
    assert list(listed) == list(DOCUMENTED)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_schema(listed: dict[str, Tool], name: str) -> None:
    schema = listed[name].input_schema
    required, optional = DOCUMENTED[name]
    assert list(schema["properties"]) == required + optional
    assert schema["required"] == required
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    for argument in schema["properties"].values():
        assert argument["description"].endswith(".")
        assert argument["type"] in ("string", "integer", "boolean", "array")


def test_arrays_and_closed_vocabularies(listed: dict[str, Tool]) -> None:
    narrowed = {
        (tool.name, name): schema.get("items", schema.get("enum"))
        for tool in listed.values()
        for name, schema in tool.input_schema["properties"].items()
        if "items" in schema or "enum" in schema
    }
    assert narrowed == {
        ("receive_deferred", "seq_numbers"): {"type": "integer"},
        ("peek", "state"): ["active", "locked", "deferred", "scheduled", "dead_lettered"],
        ("create_key", "permissions"): {"type": "string", "enum": ["send", "listen", "manage"]},
        ("list_keys", "sort"): ["id_asc", "created_desc"],
    }


@pytest.mark.parametrize(
    ("hint", "names"),
    [
        ("read_only_hint", {"observe", "list_queues", "peek", "stats", "list_keys"}),
        ("destructive_hint", {"complete", "purge", "revoke_key"}),
        (
            "idempotent_hint",
            {
                *("observe", "list_queues", "peek", "stats", "list_keys"),
                *("create_queue", "complete", "abandon", "reject", "defer", "revoke_key"),
            },
        ),
        ("open_world_hint", set()),
    ],
)
def test_hints(listed: dict[str, Tool], hint: str, names: set[str]) -> None:
    assert {name for name, tool in listed.items() if getattr(tool.annotations, hint)} == names


def test_the_life_of_a_lock_is_explained(listed: dict[str, Tool]) -> None:
    for word in ("lock_token", "locked_until_ms", "complete, abandon, reject or defer"):
        assert word in str(listed["receive"].description)
    for word in ("lock_lost", "outcome_unknown", "base64", "at least once"):
        assert word in INSTRUCTIONS


def test_the_page_has_every_tool_with_its_arguments() -> None:
    table = {
        pages.quoted(row[0])[0]: pages.quoted(row[1])
        for row in pages.rows(pages.section(PAGE, "Tools"))
    }
    assert table == {tool.name: [argument.name for argument in tool.arguments] for tool in TOOLS}

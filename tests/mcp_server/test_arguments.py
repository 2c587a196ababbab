"""What is advertised for the arguments is what is accepted, and nothing reaches the broker
otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from client.stub import StubBroker
from mqlite.mcp.arguments import Argument
from mqlite.mcp.tools import TOOLS

from .support import EXAMPLES, Agent

REQUIRED = [
    (tool.name, argument.name) for tool in TOOLS for argument in tool.arguments if argument.required
]
WRONG: dict[str, list[Any]] = {
    "string": [7, True, None, ["x"], {"x": 1}, "\ud800"],
    "integer": ["7", 7.0, 7.5, True, None, [7], 2**63, -(2**63)],
    "boolean": ["true", 1, None],
    "array": ["x", '["x"]', 5, {"0": "x"}, None],
}
EVERY = [(tool.name, argument) for tool in TOOLS for argument in tool.arguments]


def test_the_examples_hold_every_argument() -> None:
    known = {tool.name: {argument.name for argument in tool.arguments} for tool in TOOLS}
    known["purge"].remove("all")  # max and all exclude each other
    assert {name: set(example) for name, example in EXAMPLES.items()} == known


@pytest.mark.parametrize(("tool", "argument"), REQUIRED)
def test_missing(stub: StubBroker, stub_agent: Agent, tool: str, argument: str) -> None:
    arguments = {name: value for name, value in EXAMPLES[tool].items() if name != argument}
    answer = stub_agent.call(tool, **arguments)
    assert answer.code == "invalid_argument"
    assert f"{argument} is missing" in answer.text
    assert stub.requests == []


@pytest.mark.parametrize(("tool", "argument"), EVERY, ids=lambda part: getattr(part, "name", part))
def test_mistyped(stub: StubBroker, stub_agent: Agent, tool: str, argument: Argument) -> None:
    for value in WRONG[argument.kind.type]:
        answer = stub_agent.call(tool, **{**EXAMPLES[tool], argument.name: value})
        assert answer.code == "invalid_argument", value
        assert f" {argument.name} must be " in answer.text, value
    assert stub.requests == []


@pytest.mark.parametrize("tool", EXAMPLES)
def test_unknown(stub: StubBroker, stub_agent: Agent, tool: str) -> None:
    answer = stub_agent.call(tool, **EXAMPLES[tool], quuee="q")
    assert answer.code == "invalid_argument"
    assert "unknown argument 'quuee'" in answer.text
    assert all(name in answer.text for name in EXAMPLES[tool])
    assert stub.requests == []


@pytest.mark.parametrize(
    ("tool", "argument", "values", "item"),
    [
        ("receive_deferred", "seq_numbers", [1, "2"], "seq_numbers[1]"),
        ("receive_deferred", "seq_numbers", [1, 2, 2**63], "seq_numbers[2]"),
        ("create_key", "permissions", [True], "permissions[0]"),
    ],
)
def test_mistyped_items(
    stub: StubBroker, stub_agent: Agent, tool: str, argument: str, values: list[Any], item: str
) -> None:
    answer = stub_agent.call(tool, **{**EXAMPLES[tool], argument: values})
    assert answer.code == "invalid_argument"
    assert f" {item} must be " in answer.text
    assert stub.requests == []


@pytest.mark.parametrize(
    ("tool", "argument", "words"),
    [
        ("peek", "state", "active, locked, deferred, scheduled, dead_lettered"),
        ("list_keys", "sort", "id_asc, created_desc"),
    ],
)
@pytest.mark.parametrize("value", ["", "ACTIVE", "dead", "created_asc", "mqk_secret"])
def test_a_word_of_no_vocabulary(
    stub: StubBroker, stub_agent: Agent, tool: str, argument: str, words: str, value: str
) -> None:
    answer = stub_agent.call(tool, **{**EXAMPLES[tool], argument: value})
    assert answer == (True, f"error: invalid_argument: {argument} must be one of {words}")
    assert stub.requests == []


def test_a_permission_that_there_is_not(stub: StubBroker, stub_agent: Agent) -> None:
    wanted = {**EXAMPLES["create_key"], "permissions": ["send", "monitor"]}
    answer = stub_agent.call("create_key", **wanted)
    said = "permissions[1] must be one of send, listen, manage"
    assert answer == (True, f"error: invalid_argument: {said}")
    assert stub.requests == []


def test_a_refused_value_is_not_repeated(stub_agent: Agent) -> None:
    answer = stub_agent.call("complete", queue="q", seq_number="secret", lock_token=["secret"])
    assert answer.failed
    assert "secret" not in answer.text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "max must be 1 or more"),
        ({"max": 0}, "max must be 1 or more"),
        ({"max": -1}, "max must be 1 or more"),
        ({"all": False}, "max must be 1 or more"),
        ({"all": False, "max": 0}, "max must be 1 or more"),
        ({"all": True, "max": 5}, "exclude each other"),
    ],
)
def test_purge_wants_a_bound_or_all(
    stub: StubBroker, stub_agent: Agent, arguments: dict[str, Any], said: str
) -> None:
    answer = stub_agent.call("purge", queue="q", **arguments)
    assert answer.code == "invalid_argument"
    assert said in answer.text
    assert stub.requests == []

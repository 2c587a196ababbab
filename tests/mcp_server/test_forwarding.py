"""What a tool asks the broker, and what becomes of its answer."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from client import peer as peers, stub as stubs
from client.stub import NO_PATH, StubBroker
from mqlite.mcp.tools import TOOLS

from .support import EXAMPLES, TOKEN, Agent

ROUTES = {
    "observe": "AdminService/Observe",
    "list_queues": "AdminService/ListQueues",
    "create_queue": "AdminService/CreateQueue",
    "send": "QueueService/Send",
    "receive": "QueueService/Receive",
    "complete": "QueueService/Complete",
    "abandon": "QueueService/Abandon",
    "reject": "QueueService/Reject",
    "renew": "QueueService/Renew",
    "defer": "QueueService/Defer",
    "receive_deferred": "QueueService/ReceiveDeferred",
    "peek": "QueueService/Peek",
    "stats": "QueueService/Stats",
    "redrive": "AdminService/Redrive",
    "purge": "AdminService/Purge",
    "create_key": "AuthService/CreateKey",
    "list_keys": "AuthService/ListKeys",
    "revoke_key": "AuthService/RevokeKey",
}
LEASE = {"queue": "q", "seq_number": 5, "lock_token": "t"}
REQUESTS: dict[str, dict[str, Any]] = {
    **EXAMPLES,
    "send": {
        "queue": "q",
        "messages": [{"body": "aGVsbG8=", "message_id": "m1", "group_id": "g1"}],
    },
    "reject": {**LEASE, "dead_letter_reason": "bad"},
}


@pytest.mark.parametrize("tool", EXAMPLES)
def test_the_request(stub: StubBroker, stub_agent: Agent, tool: str) -> None:
    assert stub_agent.ok(tool, **EXAMPLES[tool]) is not None
    assert stub.last == (f"/mqlite.v1.{ROUTES[tool]}", f"Bearer {TOKEN}", REQUESTS[tool])


@pytest.mark.parametrize(
    ("tool", "argument"),
    [
        (tool.name, argument.name)
        for tool in TOOLS
        for argument in tool.arguments
        if not argument.required and argument.name != "all"
    ],
)
def test_what_is_left_out_is_not_sent(
    stub: StubBroker, stub_agent: Agent, tool: str, argument: str
) -> None:
    if (tool, argument) == ("purge", "max"):
        stub_agent.ok("purge", queue="q", all=True)
        assert stub.last.body == {"queue": "q"}
        return
    some = {name: value for name, value in EXAMPLES[tool].items() if name != argument}
    stub_agent.ok(tool, **some)
    less = stub.last.body
    stub_agent.ok(tool, **EXAMPLES[tool])
    assert less != stub.last.body


def test_purge_may_say_that_it_is_not_for_all(stub: StubBroker, stub_agent: Agent) -> None:
    stub_agent.ok("purge", queue="q", all=False, max=2)
    assert stub.last.body == {"queue": "q", "max": 2}


def test_a_body_is_sent_as_utf8(stub: StubBroker, stub_agent: Agent) -> None:
    stub_agent.ok("send", queue="q", body="größer €")
    assert stub.last.body == {"queue": "q", "messages": [{"body": "Z3LDtsOfZXIg4oKs"}]}


def test_without_a_token_no_credential_is_sent(stub: StubBroker) -> None:
    Agent(stub.url, "").ok("stats", queue="q")
    assert stub.last.token is None


def test_the_answer_is_the_broker_s_to_the_byte(stub: StubBroker, stub_agent: Agent) -> None:
    raw = b'{"queue" :"q", "more": "\\u20ac", "n": 12345678901234567890}\n'
    stub.behaviour = lambda *_: (200, raw)
    assert stub_agent.call("stats", queue="q") == (False, raw.decode())


def test_an_unknown_tool(stub: StubBroker, stub_agent: Agent) -> None:
    answer = stub_agent.call("delete_queue", name="q")
    assert answer.code == "invalid_argument"
    assert "'delete_queue'" in answer.text
    assert stub.requests == []


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "invalid_argument"),
        (401, "unauthenticated"),
        (403, "permission_denied"),
        (404, "not_found"),
        (409, "lock_lost"),
        (409, "a_code_of_tomorrow"),
        (413, "message_too_large"),
        (500, "internal"),
        (503, "unavailable"),
    ],
)
def test_a_refusal(stub: StubBroker, stub_agent: Agent, status: int, code: str) -> None:
    raw = b'{"code":"%s","message":"so it is"}' % code.encode()
    stub.behaviour = lambda *_: (status, raw + b"\n")
    answer = stub_agent.call("complete", **LEASE)
    assert answer == (True, f"error: {code}: HTTP status {status} {raw.decode()}")


@pytest.mark.parametrize("tool", EXAMPLES)
def test_an_operation_that_the_broker_lacks(stub: StubBroker, stub_agent: Agent, tool: str) -> None:
    stub.behaviour = lambda *_: (404, NO_PATH)
    answer = stub_agent.call(tool, **EXAMPLES[tool])
    assert answer.code == "unsupported"
    assert NO_PATH["message"] in answer.text


@pytest.mark.parametrize(
    ("status", "page"),
    [
        (200, b"<html>welcome</html>"),
        (200, b"[1]"),
        (200, b'{"a": "\xff"}'),
        (301, b"moved"),
        (404, b"<html>not here</html>"),
        (404, b"{}"),
        (404, b"null"),
        (404, b'{"code":"no code","message":""}'),
    ],
)
def test_an_endpoint_that_is_no_broker(
    stub: StubBroker, stub_agent: Agent, status: int, page: bytes
) -> None:
    stub.behaviour = lambda *_: (status, page)
    answer = stub_agent.call("stats", queue="q")
    assert answer.code == "internal"
    assert "MQLITE_ENDPOINT" in answer.text
    assert f"HTTP status {status} {page.decode(errors='replace')}" in answer.text


@pytest.mark.parametrize("tool", ["stats", "create_queue"])
@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_too_deep_to_read(
    stub: StubBroker, stub_agent: Agent, status: int, tool: str
) -> None:
    stub.behaviour = lambda *_: (status, b'{"queues":' + b"[" * 200_000 + b"]" * 200_000 + b"}")
    answer = stub_agent.call(tool, **EXAMPLES[tool])
    assert answer.code == "internal"
    assert len(answer.text) < 5000


def test_a_list_that_is_none_is_cut_too(stub: StubBroker, stub_agent: Agent) -> None:
    stub.behaviour = lambda *_: (200, {"x": "y" * 100_000})
    assert len(stub_agent.call("create_queue", name="q").text) < 5000


def test_a_long_page_is_cut(stub: StubBroker, stub_agent: Agent) -> None:
    stub.behaviour = lambda *_: (404, b"x" * 1_000_000)
    assert len(stub_agent.call("stats", queue="q").text) < 5000


READERS = [tool.name for tool in TOOLS if tool.effect.reads]
WRITERS = [tool.name for tool in TOOLS if not tool.effect.reads and tool.name != "create_queue"]


@pytest.mark.parametrize("tool", READERS)
def test_a_gateway_that_fails_a_read(stub: StubBroker, stub_agent: Agent, tool: str) -> None:
    stub.behaviour = lambda *_: (502, b"bad gateway")
    answer = stub_agent.call(tool, **EXAMPLES[tool])
    assert answer.code == "unavailable"
    assert "HTTP status 502 bad gateway" in answer.text


@pytest.mark.parametrize("tool", WRITERS)
def test_a_gateway_that_fails_a_write(stub: StubBroker, stub_agent: Agent, tool: str) -> None:
    stub.behaviour = lambda *_: (502, b"bad gateway")
    answer = stub_agent.call(tool, **EXAMPLES[tool])
    assert answer.code == "outcome_unknown"
    assert len(stub.requests) == 1, "nothing is sent twice"


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n{}" % 10**20, b"x" * 60_000 + b"\r\n"],
    ids=["a length that no memory has", "a long line"],
)
def test_what_is_not_http_is_an_answer_lost_and_cut(answer: bytes) -> None:
    with peers.scripted(lambda peer: peer.serve(answer).close()) as peer:
        failed = Agent(peer.url).call("send", queue="q", body="")
    assert failed.code == "outcome_unknown"
    assert len(failed.text) < 5000


def test_a_failed_creation_tells_the_key_s_id(stub: StubBroker, stub_agent: Agent) -> None:
    stub.behaviour = lambda *_: (502, b"bad gateway")
    answer = stub_agent.call("create_key", **EXAMPLES["create_key"])
    assert answer.code == "outcome_unknown"
    assert answer.text.endswith(f"; key id {EXAMPLES['create_key']['id']}")
    assert answer.text.count("error:") == 1


def test_what_is_no_key_id_is_not_repeated(stub: StubBroker, stub_agent: Agent) -> None:
    stub.behaviour = lambda *_: (400, {"code": "invalid_argument", "message": "id is bad"})
    answer = stub_agent.call("create_key", **{**EXAMPLES["create_key"], "id": "mqk_secret"})
    assert answer.code == "invalid_argument"
    assert "mqk_secret" not in answer.text


def test_create_queue_asks_what_is_there_first(stub: StubBroker, stub_agent: Agent) -> None:
    stub_agent.ok("create_queue", name="q")
    assert stub.methods == ["ListQueues", "CreateQueue"]


def test_create_queue_of_a_queue_that_is_there(stub: StubBroker, stub_agent: Agent) -> None:
    stub.behaviour = lambda *_: (200, {"queues": [{"name": "q", "kind": "queue"}]})
    assert stub_agent.ok("create_queue", name="q") == {}
    assert stub.methods == ["ListQueues"]


def test_a_list_of_queues_that_is_none(stub: StubBroker, stub_agent: Agent) -> None:
    stub.behaviour = lambda *_: (200, {"queues": 7})
    assert stub_agent.call("create_queue", name="q").code == "internal"
    assert len(stub.requests) == 1


def test_no_queues_may_be_null(stub: StubBroker, stub_agent: Agent) -> None:
    stub.behaviour = lambda *_: (200, {"queues": None})
    stub_agent.ok("create_queue", name="q")
    assert stub.methods == ["ListQueues", "CreateQueue"]


def test_a_broker_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        agent = Agent(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout="50ms")
        assert agent.call("stats", queue="q").code == "unavailable"
        assert agent.call("complete", **LEASE).code == "outcome_unknown"


def test_the_default_patience_covers_the_longest_poll(stub: StubBroker) -> None:
    longest_poll_ms = 20_000
    assert Agent(stub.url).broker.target.patience.answer_ms == 30_000 > longest_poll_ms


def test_under_the_prefix_of_another_application() -> None:
    with stubs.serving(lambda *_: (200, {})) as stub:
        Agent(stub.url + "/queues/").ok("stats", queue="q")
        assert stub.last.path == "/queues/mqlite.v1.QueueService/Stats"

"""The tools against a real broker."""

from __future__ import annotations

import base64
import socket
from typing import Any

import anyio
import pytest
from mcp import Client

from mqlite.broker.routes import ROUTES
from mqlite.broker.serve import serving
from mqlite.clock import ManualClock
from mqlite.embedded import Embedded
from mqlite.mcp.server import server
from mqlite.mcp.tools import TOOLS
from patience import PATIENCE_S, eventually

from .support import EXAMPLES, TOKEN, Agent, result

KEY = {"id": "e734810a9f634d75bd8a029c1f7e5062", "name": "producer", "permissions": ["send"]}


def receive(agent: Agent, queue: str = "q") -> dict[str, Any]:
    """One message's fields, as an agent copies them into the next call."""
    [message] = agent.ok("receive", queue=queue)["messages"]
    return {field: message[field] for field in ("seq_number", "lock_token")} | {"queue": queue}


def test_every_tool_s_route_is_served() -> None:
    assert {f"/mqlite.v1.{tool.route}" for tool in TOOLS} <= ROUTES.keys()


def test_send_receive_complete(agent: Agent) -> None:
    agent.ok("create_queue", name="q")
    assert agent.ok("send", queue="q", body="größer")["seq_numbers"] == [1]
    [message] = agent.ok("receive", queue="q")["messages"]
    assert base64.b64decode(message["body"]).decode() == "größer"
    lease = {field: message[field] for field in ("seq_number", "lock_token")}
    assert agent.ok("complete", queue="q", **lease) == {"ok": True}
    assert agent.ok("complete", queue="q", **lease) == {"ok": True}, "repeating it is safe"
    assert agent.ok("stats", queue="q")["total"] == 0


def test_abandon_and_renew(agent: Agent) -> None:
    agent.ok("create_queue", name="q")
    agent.ok("send", queue="q", body="x")
    lease = receive(agent)
    assert agent.ok("renew", **lease) == {"ok": True}
    assert agent.ok("abandon", **lease) == {"ok": True}
    lost = agent.call("complete", **lease)
    assert lost.code == "lock_lost"
    assert "HTTP status 409" in lost.text
    [message] = agent.ok("receive", queue="q")["messages"]
    assert message["delivery_count"] == 2


def test_defer_and_receive_deferred(agent: Agent) -> None:
    agent.ok("create_queue", name="q")
    agent.ok("send", queue="q", body="x")
    lease = receive(agent)
    assert agent.ok("defer", **lease) == {"ok": True}
    assert agent.ok("receive", queue="q")["messages"] == []
    [found] = agent.ok("peek", queue="q", state="deferred")["messages"]
    [message] = agent.ok("receive_deferred", queue="q", seq_numbers=[found["seq_number"]])[
        "messages"
    ]
    assert message["lock_token"] != lease["lock_token"]


def test_reject_redrive_and_purge(agent: Agent) -> None:
    agent.ok("create_queue", name="q")
    for body in "abc":
        agent.ok("send", queue="q", body=body)
        agent.ok("reject", **receive(agent), reason="no good")
    dead = agent.ok("peek", queue="q", state="dead_lettered", max=2)["messages"]
    assert [message["dead_letter_reason"] for message in dead] == ["no good"] * 2
    assert agent.ok("redrive", queue="q", max=1)["moved"] == 1
    assert agent.call("purge", queue="q").code == "invalid_argument"
    assert agent.ok("stats", queue="q")["dead_lettered"] == 2
    assert agent.ok("purge", queue="q", max=1)["purged"] == 1
    assert agent.ok("purge", queue="q", all=True)["purged"] == 1
    assert agent.ok("stats", queue="q")["active"] == 1


def test_create_queue_keeps_every_setting(mq: Embedded, agent: Agent) -> None:
    mq.create_queue(
        "q",
        lock_duration="7s",
        max_delivery_count=3,
        default_ttl="1h",
        dead_letter_on_expire=False,
        dedup_window="5m",
        ordering_mode="group_fifo",
        dlq_max_age="1d",
        dlq_max_count=17,
        dlq_max_bytes=4096,
        retry_initial_delay="1s",
        retain_completed="1h",
    )
    before = mq.list_queues()
    assert agent.ok("create_queue", name="q") == {}
    assert mq.list_queues() == before


def test_create_queue_does_not_take_another_s_name(mq: Embedded, agent: Agent) -> None:
    mq.subscribe("topic", "subscription")
    for name in ("topic", "subscription"):
        assert agent.call("create_queue", name=name).code == "name_conflict"


def test_list_queues_is_the_broker_s_own_answer(mq: Embedded, agent: Agent) -> None:
    mq.create_queue("q", lock_duration="7s")
    [entry] = agent.ok("list_queues")["queues"]
    assert (entry["name"], entry["lock_duration_ms"]) == ("q", 7000)


def test_what_only_the_broker_checks(agent: Agent) -> None:
    assert agent.call("create_queue", name="").code == "invalid_argument"
    assert agent.call("receive", queue="nowhere").code == "not_found"
    assert agent.call("redrive", queue="nowhere", max=-1).code == "invalid_argument"


@pytest.mark.parametrize("token", ["", "mqk_of_another_broker"])
def test_without_the_right_token(url: str, token: str) -> None:
    agent = Agent(url, token)
    for tool, arguments in EXAMPLES.items():
        answer = agent.call(tool, **arguments)
        assert answer.code == "unauthenticated", tool
        assert "HTTP status 401" in answer.text
        assert "mqk_" not in answer.text


def test_a_broker_that_is_absent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    answer = Agent(url).call("send", queue="q", body="x")
    assert answer.code == "unavailable"
    assert url in answer.text
    assert "nothing was done" in answer.text
    assert TOKEN not in answer.text


def test_a_broker_that_is_restarted(mq: Embedded) -> None:
    with serving(mq, tokens=[TOKEN]) as url:
        agent = Agent(url)
        agent.ok("create_queue", name="q")
        agent.ok("send", queue="q", body="x")
    assert agent.call("stats", queue="q").code == "unavailable"
    with serving(mq, url.removeprefix("http://"), tokens=[TOKEN]):
        assert agent.ok("stats", queue="q")["active"] == 1


def test_a_receive_waits_and_holds_up_no_other_call(
    mq: Embedded, clock: ManualClock, agent: Agent
) -> None:
    mq.create_queue("q")
    received = []

    async def exchange() -> None:
        async with Client(server(agent.broker)) as client, anyio.create_task_group() as tasks:

            async def wait() -> None:
                answer = await client.call_tool("receive", {"queue": "q", "wait_time_ms": 20_000})
                received.append(result(answer).json)

            tasks.start_soon(wait)
            await anyio.to_thread.run_sync(eventually, lambda: clock.waiting == 1)
            assert result(await client.call_tool("send", {"queue": "q", "body": "x"})).json

    anyio.run(exchange)
    [answer] = received
    assert answer["messages"][0]["delivery_count"] == 1


def test_a_cancelled_receive_takes_nothing(mq: Embedded, clock: ManualClock, url: str) -> None:
    mq.create_queue("q")
    agent = Agent(url, timeout=3 * PATIENCE_S)

    async def exchange() -> None:
        async with Client(server(agent.broker)) as client:
            async with anyio.create_task_group() as tasks:
                poll = {"queue": "q", "wait_time_ms": 20_000}
                tasks.start_soon(client.call_tool, "receive", poll)
                await anyio.to_thread.run_sync(eventually, lambda: clock.waiting == 1)
                tasks.cancel_scope.cancel()
            await anyio.to_thread.run_sync(eventually, lambda: clock.waiting == 0)

    anyio.run(exchange)
    mq.send("q", "x")
    [message] = mq.receive("q")
    assert message.delivery_count == 1


def test_observe(mq: Embedded, agent: Agent) -> None:
    mq.create_queue("q")
    observation = agent.ok("observe")
    assert observation["collection"]["state"] == "available"
    assert observation["access"] == "manage"


def test_the_life_of_a_key(url: str, agent: Agent) -> None:
    agent.ok("create_queue", name="q")
    created = agent.ok("create_key", **KEY)
    assert created["key"]["id"] == KEY["id"]
    holder = Agent(url, created["token"])
    assert holder.ok("send", queue="q", body="x")["seq_numbers"] == [1]
    refused = {"receive", "create_queue", "list_queues", "create_key", "list_keys", "observe"}
    for tool in refused:
        assert holder.call(tool, **EXAMPLES[tool]).code == "permission_denied", tool
    listed = agent.call("list_keys", limit=1, sort="created_desc")
    assert [key["id"] for key in listed.json["keys"]] == [KEY["id"]]
    assert created["token"] not in listed.text
    again = agent.call("create_key", **KEY)
    assert again.code == "key_conflict"
    assert KEY["id"] in again.text
    assert created["token"] not in again.text
    for _ in range(2):
        assert agent.ok("revoke_key", id=KEY["id"]) == {"ok": True}
    assert holder.call("send", queue="q", body="x").code == "unauthenticated"


def test_keys_without_authentication(mq: Embedded) -> None:
    with serving(mq, tokens="off") as url:
        assert Agent(url).call("create_key", **KEY).code == "permission_denied"


def test_a_monitor_may_only_observe(mq: Embedded) -> None:
    with serving(mq, tokens=[TOKEN], monitor_tokens=["mqk_monitor"]) as url:
        monitor = Agent(url, "mqk_monitor")
        for tool in EXAMPLES.keys() - {"observe"}:
            assert monitor.call(tool, **EXAMPLES[tool]).code == "permission_denied", tool
        assert monitor.ok("observe")["access"] == "monitor"

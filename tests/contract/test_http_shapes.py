"""Answers as bytes, where the clients would not see the difference."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.request import Request, urlopen

import pytest

from contract.looks import one
from contract.ways import TOKEN, World
from mqlite import OutMessage

pytestmark = pytest.mark.parametrize("way", ["http"])

Post = Callable[..., dict[str, Any]]
PLAIN = {"seq_number", "enqueued_at_ms", "locked_until_ms", "delivery_count", "lock_token", "body"}


@pytest.fixture
def post(world: World) -> Post:
    base = world.mq.base_url  # type: ignore[attr-defined]

    def post(operation: str, **fields: object) -> dict[str, Any]:
        request = Request(
            f"{base}/mqlite.v1.{operation}",
            json.dumps(fields).encode(),
            {"Authorization": f"Bearer {TOKEN}"},
        )
        with urlopen(request) as answer:
            return json.load(answer)

    return post


def test_a_plain_message_carries_what_upstream_answers_and_its_lease(
    world: World, post: Post
) -> None:
    world.mq.create_queue("q")
    world.mq.send("q", b"a")
    [message] = post("QueueService/Receive", queue="q")["messages"]
    assert set(message) == PLAIN | {"lease_ms"}


def test_an_empty_body_has_no_key(world: World, post: Post) -> None:
    world.mq.create_queue("q")
    world.mq.send("q", b"")
    [message] = post("QueueService/Receive", queue="q")["messages"]
    assert set(message) == (PLAIN | {"lease_ms"}) - {"body"}


def test_additional_message_fields_appear_only_when_set(world: World, post: Post) -> None:
    world.mq.create_queue("q")
    world.mq.send_batch("q", [OutMessage(priority=1), OutMessage()])
    first, second = post("QueueService/Receive", queue="q", max_messages=2)["messages"]
    assert first["priority"] == 1
    assert not {"priority", "failure_count"} & set(second)
    world.mq.abandon("q", second["seq_number"], second["lock_token"])
    [again] = post("QueueService/Receive", queue="q")["messages"]
    assert again["failure_count"] == 1


def test_a_redriven_row_has_no_visible_time(world: World, post: Post) -> None:
    world.mq.create_queue("q")
    world.mq.send("q", b"a")
    one(world.mq, "q").reject()
    world.mq.redrive("q")
    [message] = post("QueueService/Peek", queue="q")["messages"]
    assert not {"visible_at_ms", "lock_token", "locked_until_ms", "lease_ms"} & set(message)
    assert message["state"] == "active"


def test_a_single_renewal_answers_ok_alone(world: World, post: Post) -> None:
    world.mq.create_queue("q")
    world.mq.send("q", b"a")
    message = one(world.mq, "q")
    lease = {"queue": "q", "seq_number": 1, "lock_token": message.lock_token}
    assert post("QueueService/Renew", **lease) == {"ok": True}


def test_a_renewal_that_failed_has_no_deadline(world: World, post: Post) -> None:
    world.mq.create_queue("q")
    items = [{"seq_number": 5, "lock_token": "x"}]
    answer = post("QueueService/RenewBatch", queue="q", messages=items)
    assert answer == {"results": [{"seq_number": 5, "ok": False}]}


def test_complete_and_truncated_appear_only_when_they_say_something(
    world: World, post: Post
) -> None:
    world.mq.create_queue("q")
    assert post("AdminService/Redrive", queue="q") == {"moved": 0}
    assert post("AdminService/Purge", queue="q") == {"purged": 0}
    assert post("QueueService/ReceiveDeferred", queue="q", seq_numbers=[1]) == {"messages": []}


def test_receive_deferred_says_when_the_byte_budget_ended_it(world: World, post: Post) -> None:
    world.mq.create_queue("q")
    for _ in range(33):
        world.mq.send("q", b"x" * 1024 * 1024)
    while batch := world.mq.receive("q", max_messages=256):
        for message in batch:
            message.defer()
    numbers = list(range(1, 34))
    first = post("QueueService/ReceiveDeferred", queue="q", seq_numbers=numbers)
    assert (len(first["messages"]), first["truncated"]) == (32, True)
    rest = post("QueueService/ReceiveDeferred", queue="q", seq_numbers=numbers)
    assert (len(rest["messages"]), "truncated" in rest) == (1, False)


def test_clamped_numbers_are_taken_on_the_wire(world: World, post: Post) -> None:
    world.mq.create_queue("q")
    for _ in range(2):
        world.mq.send_batch("q", [b"a"] * 256)
    assert len(post("QueueService/Peek", queue="q", max=5000, from_seq=-3)["messages"]) == 512
    assert len(post("QueueService/Peek", queue="q", max=-1)["messages"]) == 32
    assert post("QueueService/Peek", queue="q", state="completed") == {"messages": []}
    assert len(post("QueueService/Receive", queue="q", max_messages=0)["messages"]) == 1
    assert len(post("QueueService/Receive", queue="q", max_messages=999)["messages"]) == 256


def test_negative_and_zero_delays_are_different_requests(world: World, post: Post) -> None:
    world.mq.create_queue("q")
    world.mq.send("q", b"a")
    message = one(world.mq, "q")
    lease = {"queue": "q", "seq_number": 1, "lock_token": message.lock_token}
    assert post("QueueService/Abandon", **lease, delay_ms=-5) == {"ok": True}
    assert post("QueueService/Abandon", **lease, delay_ms=-5) == {"ok": True}
    with pytest.raises(OSError, match="409"):
        post("QueueService/Abandon", **lease)
    assert world.mq.peek("q")[0].state == "active"

"""What becomes of a message by what its handler returns or raises."""

from __future__ import annotations

import gc
import sys
from typing import Any

import pytest

from contract.ways import World
from mqlite import (
    Abandon,
    Complete,
    Defer,
    InvalidArgument,
    LockLost,
    NotFound,
    Reject,
    Snooze,
    Unsupported,
)
from patience import eventually
from receiver.driving import Driven, Gate, call, handle_until_empty, only


@pytest.fixture(autouse=True)
def queue(world: World) -> None:
    world.mq.create_queue("q", max_delivery_count=3)
    world.mq.send("q", "the body")


@pytest.mark.parametrize("answer", [None, "text", 0, Complete, Complete()], ids=repr)
def test_returning_completes(world: World, answer: Any) -> None:
    async def handle(message: Any) -> Any:
        return answer

    driven = handle_until_empty(world, handle)
    assert world.mq.stats("q").total == 0
    assert driven.counts.completed == 1
    assert driven.reports == []


OUTCOMES = [
    (Complete(), None, "completed"),
    (Abandon("1m"), "scheduled", "abandoned"),
    (Snooze("1m"), "scheduled", "snoozed"),
    (Reject("bad", "why"), "dead_lettered", "rejected"),
    (Defer(), "deferred", "deferred"),
]


@pytest.mark.parametrize("raised", [False, True], ids=["returned", "raised"])
@pytest.mark.parametrize(("outcome", "state", "counted"), OUTCOMES, ids=lambda v: str(v))
def test_outcomes(
    world: World, outcome: Any, state: str | None, counted: str, raised: bool
) -> None:
    async def handle(message: Any) -> Any:
        if raised:
            raise outcome
        return outcome

    driven = handle_until_empty(world, handle)
    assert [m.state for m in world.mq.peek("q")] == ([state] if state else [])
    assert getattr(driven.counts, counted) == 1
    assert driven.reports == []


def test_only_a_failure_counts_as_one(world: World) -> None:
    decided = [Snooze("1s"), Abandon("1s"), ValueError("no"), Complete()]

    async def handle(message: Any) -> Any:
        seen.append((message.delivery_count, message.failure_count))
        raise decided[len(seen) - 1]

    seen: list[tuple[int, int]] = []
    world.mq.create_queue("q", max_delivery_count=10, max_counts="failures", retry_initial_delay=1)
    driven = Driven(world, handle)
    for number in range(1, 4):
        eventually(lambda number=number: len(seen) == number and world.mq.stats("q").scheduled == 1)
        world.later(10_000)
    eventually(lambda: world.mq.stats("q").total == 0)
    driven.stop()
    assert seen == [(1, 0), (2, 0), (3, 1), (4, 2)]


def test_a_rejection_carries_its_reason(world: World) -> None:
    async def handle(message: Any) -> Any:
        return Reject("bad", "why")

    handle_until_empty(world, handle)
    letter = only(world)
    assert (letter.dead_letter_reason, letter.dead_letter_description) == ("bad", "why")


def test_raising_abandons_by_the_queues_policy_until_it_is_dead_lettered(world: World) -> None:
    async def handle(message: Any) -> Any:
        deliveries.append(message.delivery_count)
        raise ValueError("always")

    deliveries: list[int] = []
    world.mq.create_queue("q", max_delivery_count=3, retry_initial_delay="10s")
    driven = Driven(world, handle)
    for number in (1, 2):
        eventually(lambda number=number: len(deliveries) == number)
        eventually(lambda: world.mq.stats("q").scheduled == 1)
        world.later(20_000)
    eventually(lambda: world.mq.stats("q").dead_lettered == 1)
    driven.stop()
    assert deliveries == [1, 2, 3]
    assert only(world).dead_letter_reason == "MaxDeliveryCountExceeded"
    assert driven.errors == [ValueError] * 3
    assert driven.counts.abandoned == 3


@pytest.mark.parametrize("delay", ["5s", lambda message: 5 * message.delivery_count])
def test_the_receivers_own_backoff(world: World, delay: Any) -> None:
    async def handle(message: Any) -> Any:
        raise ValueError

    handle_until_empty(world, handle, retry_delay=delay)
    message = only(world)
    assert message.visible_at_ms == world.clock.now() + 5000


def test_a_backoff_that_fails_leaves_it_to_the_queue(world: World) -> None:
    async def handle(message: Any) -> Any:
        raise ValueError

    driven = handle_until_empty(world, handle, retry_delay=lambda message: 1 / 0)
    assert world.mq.stats("q").dead_lettered == 1
    assert driven.errors == [ValueError, ZeroDivisionError] * 3


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_handler_settles_is_left_alone(world: World, fails: bool) -> None:
    async def handle(message: Any) -> Any:
        await call(message.defer)
        if fails:
            raise ValueError("afterwards")

    driven = handle_until_empty(world, handle)
    assert only(world).state == "deferred"
    assert driven.errors == ([ValueError] if fails else [])
    assert driven.counts.deferred == 1
    assert driven.counts.abandoned == driven.counts.completed == 0


def test_a_message_is_settled_once(world: World) -> None:
    async def handle(message: Any) -> Any:
        await call(message.abandon, "1m", snooze=True)
        for method in (message.complete, message.abandon, message.reject, message.release):
            with pytest.raises(LockLost, match="settled already"):
                await call(method)

    driven = handle_until_empty(world, handle)
    assert driven.reports == []
    assert only(world).state == "scheduled"


def test_a_failed_settlement_leaves_the_message_to_the_receiver(world: World) -> None:
    async def handle(message: Any) -> Any:
        with pytest.raises(ValueError, match="delay"):
            await call(message.abandon, delay="soon")
        return Reject("still mine")

    handle_until_empty(world, handle)
    assert only(world).dead_letter_reason == "still mine"


def test_errors_are_told_with_their_message(world: World) -> None:
    async def handle(message: Any) -> Any:
        raise problem

    problem = ValueError("why")
    driven = handle_until_empty(world, handle)
    error, message = driven.reports[0]
    assert error is problem
    assert message is not None
    assert message.text == "the body"


@pytest.mark.parametrize("kind", [RuntimeError, SystemExit])
def test_an_error_handler_that_fails_stops_nothing(
    world: World, caplog: pytest.LogCaptureFixture, kind: type[BaseException]
) -> None:
    def on_error(error: BaseException, message: Any) -> None:
        raise kind("in on_error")

    async def handle(message: Any) -> Any:
        raise ValueError

    handle_until_empty(world, handle, on_error=on_error)
    assert world.mq.stats("q").dead_lettered == 1
    assert "in on_error" in caplog.text


def test_errors_are_logged_by_default(world: World, caplog: pytest.LogCaptureFixture) -> None:
    async def handle(message: Any) -> Any:
        raise ValueError("to be logged")

    handle_until_empty(world, handle, on_error=None)
    assert "handler failed: message 1 of 'q': to be logged" in caplog.text
    assert "the body" not in caplog.text


@pytest.mark.parametrize("way", ["sync"])
def test_errors_of_no_message_are_logged_as_a_sentence(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def handle(message: Any) -> None:
        pass

    driven = Driven(world, handle, "nowhere", on_error=None)
    with pytest.raises(NotFound):
        driven.result()
    assert "stopped receiving from 'nowhere': " in caplog.text


@pytest.mark.parametrize("way", ["sync"])
def test_a_settled_message_is_freed_without_the_cycle_collector(world: World) -> None:
    async def handle(message: Any) -> None:
        bodies.append(sys.getrefcount(message.body))
        kept.append(message.body)

    bodies: list[int] = []
    kept: list[bytes] = []
    gc.disable()
    try:
        handle_until_empty(world, handle)
        [body] = kept
        # `kept`, `body` and the call: no delivery holds it any more.
        eventually(lambda: sys.getrefcount(body) <= 3)
    finally:
        gc.enable()


@pytest.mark.parametrize("way", ["sync"])
def test_an_impossible_delay_is_told_and_stops_nothing(world: World) -> None:
    async def handle(message: Any) -> Any:
        if message.text == "the body":
            return Abandon((2**63 - 1) // 1000)

    driven = Driven(world, handle)
    eventually(lambda: driven.counts.unsettled == 1)
    world.mq.send("q", "next")
    eventually(lambda: driven.counts.completed == 1)
    driven.stop()
    assert driven.errors == [InvalidArgument]


@pytest.mark.parametrize("way", ["sync"])
def test_a_broker_without_snooze_and_release_is_served_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def older(*lease: Any, delay: Any = 0, snooze: bool = False) -> None:
        if snooze:
            raise Unsupported("unknown field snooze")
        abandon(*lease, delay=delay)

    def unknown(*lease: Any) -> None:
        raise Unsupported("unknown path Release")

    async def handle(message: Any) -> Any:
        if message.text == "the body":
            return Snooze("1m")
        await gate.passed()

    gate = Gate()
    abandon = world.mq.abandon
    monkeypatch.setattr(world.mq, "abandon", older)
    monkeypatch.setattr(world.mq, "release", unknown)
    driven = Driven(world, handle)
    eventually(lambda: world.mq.stats("q").scheduled == 1)
    world.mq.send("q", "slow")
    gate.until_waiting()
    driven.receiver.abandon()
    assert driven.result() is False
    assert (world.mq.stats("q").active, world.mq.stats("q").scheduled) == (1, 1)
    assert driven.reports == []

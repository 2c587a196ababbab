"""What is claimed, and when."""

from __future__ import annotations

from typing import Any

import pytest

from contract.ways import World
from mqlite import Closed, InvalidArgument, MqliteError, NotFound
from patience import eventually
from receiver.driving import Driven, Gate


def test_nothing_is_claimed_without_a_free_slot(world: World) -> None:
    async def handle(message: Any) -> None:
        await gate.passed()

    gate = Gate()
    world.mq.create_queue("q")
    world.mq.send_batch("q", ["work"] * 10)
    driven = Driven(world, handle, concurrency=3)
    gate.until_waiting(3)
    stats = world.mq.stats("q")
    assert (stats.locked, stats.active) == (3, 7)
    assert driven.receiver.running == 3
    gate.open()
    eventually(lambda: world.mq.stats("q").total == 0)
    assert driven.stop() is True
    assert driven.counts.completed == 10
    assert driven.receiver.running == 0


def test_a_long_poll_takes_what_comes(world: World) -> None:
    async def handle(message: Any) -> None:
        seen.append(message.text)

    seen: list[str] = []
    world.mq.create_queue("q")
    driven = Driven(world, handle, concurrency=2)
    for text in ("one", "two"):
        world.until_waiting("q")
        world.mq.send("q", text)
        eventually(lambda text=text: seen[-1:] == [text])
    driven.stop()


def test_a_paused_queue_is_waited_for(world: World) -> None:
    async def handle(message: Any) -> None:
        pass

    world.mq.create_queue("q")
    world.mq.pause_queue("q")
    world.mq.send("q", "work")
    driven = Driven(world, handle)
    world.until_waiting("q")
    world.mq.resume_queue("q")
    eventually(lambda: world.mq.stats("q").total == 0)
    driven.stop()
    assert driven.reports == []


def test_groups_stay_in_order(world: World) -> None:
    async def handle(message: Any) -> None:
        seen.append(message.text)

    seen: list[str] = []
    world.mq.create_queue("q", ordering_mode="strict_fifo")
    world.mq.send_batch("q", [str(n) for n in range(20)])
    driven = Driven(world, handle, concurrency=4)
    eventually(lambda: len(seen) == 20)
    driven.stop()
    assert seen == [str(n) for n in range(20)]


def test_a_lasting_failure_is_told_and_ends_the_run(world: World) -> None:
    async def handle(message: Any) -> None:
        pass

    driven = Driven(world, handle, "nowhere")
    with pytest.raises(NotFound):
        driven.result()
    assert driven.errors == [NotFound]


def test_closing_the_queue_ends_the_run(world: World) -> None:
    async def handle(message: Any) -> None:
        pass

    world.mq.create_queue("q")
    driven = Driven(world, handle)
    world.until_waiting("q")
    world.mq.close()
    with pytest.raises(Closed):
        driven.result()
    assert driven.errors == [Closed]


@pytest.mark.parametrize("way", ["sync"])
def test_a_passing_failure_is_ridden_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def handle(message: Any) -> None:
        pass

    world.mq.create_queue("q")
    world.mq.send("q", "work")
    core, failures = world.core, 3
    receive = core.receive

    def failing(*args: Any) -> Any:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise MqliteError("a proxy in between says 502")
        return receive(*args)

    monkeypatch.setattr(core, "receive", failing)
    driven = Driven(world, handle)
    # The first failure is only repeated; the next two are told and waited out.
    eventually(lambda: len(driven.reports) == 1 and world.clock.waiting > 0)
    world.clock.advance(5000)
    eventually(lambda: len(driven.reports) == 2)
    eventually(lambda: world.clock.waiting > 0)
    world.clock.advance(5000)
    eventually(lambda: world.mq.stats("q").total == 0)
    driven.stop()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"concurrency": 0}, "concurrency must be an integer from 1"),
        ({"prefetch": 0}, "prefetch must be an integer from 1"),
        ({"wait": "21s"}, "wait must be at most 20"),
        ({"retry_delay": "soon"}, "retry_delay is not a duration"),
        ({"drain_timeout": -1}, "drain_timeout must not be negative"),
        ({"speed": 1}, "unknown option 'speed'"),
        ({"auto_renew": "yes"}, "auto_renew must be True or False"),
        ({"on_error": "log"}, "on_error must be callable"),
    ],
)
@pytest.mark.parametrize("way", ["sync"])
def test_options_are_checked(world: World, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidArgument, match=complaint):
        world.mq.receiver("q", **options)

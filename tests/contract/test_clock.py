"""Clocks that jump while a call is under way, or step back between calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import mqlite
from contract.looks import HOUR, MINUTE, SECOND, bodies, counts, one
from contract.ways import World


@contextmanager
def jumping(world: World, ms: int) -> Iterator[None]:
    """Every look at the clock moves it."""
    world.clock.now = lambda: world.clock.advance(ms)  # type: ignore[method-assign]
    try:
        yield
    finally:
        del world.clock.now


def test_a_renewal_the_write_outlived_is_not_promised(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", lock_duration="5h")
    mq.send_batch("q", [b"a", b"b"])
    held = mq.receive("q", max_messages=2)
    mq.create_queue("q", lock_duration="1s")
    with jumping(world, 6 * HOUR):
        results = mq.renew_batch("q", held)
    assert [(slot.ok, slot.locked_until_ms) for slot in results] == [(False, 0), (False, 0)]


def test_a_renewal_that_ran_out_by_the_end_of_its_commit_is_not_ok(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", lock_duration="30m")
    mq.send("q", b"a")
    message = one(mq, "q")
    world.clock.advance(-2 * HOUR)
    mq.create_queue("q", lock_duration="1s")
    world.clock.advance(2 * HOUR)
    with jumping(world, 20 * MINUTE):
        [slot] = mq.renew_batch("q", [message])
    assert not slot.ok
    with pytest.raises(mqlite.LockLost):
        message.renew()


def test_a_single_renewal_that_ran_out_meanwhile_is_lock_lost(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", lock_duration="30m")
    mq.send("q", b"a")
    message = one(mq, "q")
    mq.create_queue("q", lock_duration="1s")
    with jumping(world, 20 * MINUTE), pytest.raises(mqlite.LockLost):
        message.renew()


def test_a_claim_that_ran_out_meanwhile_is_not_handed_out(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", lock_duration="1s")
    mq.send("q", b"a")
    with jumping(world, HOUR):
        assert mq.receive("q") == []
    world.later(SECOND)
    assert one(mq, "q").body == b"a"


@pytest.mark.parametrize("form", ["single", "batch"])
def test_a_renewed_deadline_is_measured_inside_the_call(world: World, form: str) -> None:
    mq = world.mq
    mq.create_queue("q", lock_duration="1h")
    mq.send("q", b"a")
    message = one(mq, "q")
    asked_at = world.clock.now()
    with jumping(world, SECOND):
        renewed = message.renew() if form == "single" else mq.renew_batch("q", [message])[0]
    assert renewed.locked_until_ms > asked_at + HOUR
    assert renewed.locked_until_ms <= world.clock.now() + HOUR
    assert renewed.lease_ms <= HOUR


def test_a_backward_step_lengthens_leases_and_a_forward_one_ends_them(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"a")
    message = one(mq, "q")
    world.later(-HOUR)
    assert counts(mq, "q") == {"locked": 1}
    message.renew()
    world.later(HOUR + 30 * SECOND)
    assert counts(mq, "q") == {"active": 1}


def test_order_is_by_number_also_when_time_went_backwards(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    for body in (b"1", b"2", b"3"):
        mq.send("q", body)
        world.clock.advance(-MINUTE)
    world.clock.advance(HOUR)
    assert bodies(mq.receive("q", max_messages=3)) == [b"1", b"2", b"3"]


def test_a_message_active_since_a_later_time_can_still_be_claimed(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"a")
    world.clock.advance(-HOUR)
    assert one(mq, "q").body == b"a"

"""Bounds for dead letters: the engine's, and each queue's own."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from contract.looks import DAY, HOUR, MINUTE, bodies, counts, dead_letter, one, seqs
from contract.ways import World
from mqlite.api import MQ

Make = Callable[..., World]


def dead(mq: MQ, queue: str = "q") -> list[int]:
    return seqs(mq.peek(queue, state="dead_lettered", max_messages=1000))


def test_nothing_is_dropped_by_default(world: World) -> None:
    world.mq.create_queue("q")
    dead_letter(world.mq, "q", b"a", b"b")
    world.later(10_000 * DAY)
    assert counts(world.mq, "q") == {"dead_lettered": 2}


def test_the_newest_are_kept_by_count(make_world: Make) -> None:
    world = make_world(dlq_max_count=2)
    mq = world.mq
    mq.create_queue("q")
    sent = dead_letter(mq, "q", b"a", b"b", b"c", b"d")
    mq.send_batch("q", [b"live", b"held"])
    one(mq, "q")
    world.maintain()
    assert dead(mq) == sent[2:]
    assert counts(mq, "q") == {"active": 1, "locked": 1, "dead_lettered": 2}


def test_the_newest_are_kept_by_bytes(make_world: Make) -> None:
    world = make_world(dlq_max_bytes=250)
    world.mq.create_queue("q")
    sent = dead_letter(world.mq, "q", *(b"%d" % n * 100 for n in range(5)))
    world.maintain()
    assert dead(world.mq) == sent[3:]


def test_bytes_are_those_of_large_bodies_too(make_world: Make) -> None:
    world = make_world(dlq_max_bytes=25_000)
    world.mq.create_queue("q")
    sent = dead_letter(world.mq, "q", *(b"%d" % n * 10_000 for n in range(4)))
    world.maintain()
    assert dead(world.mq) == sent[2:]
    assert len(world.rows("SELECT 1 FROM mqlite_payloads")) == 2


def test_everything_goes_when_the_newest_alone_is_over_the_bytes(make_world: Make) -> None:
    world = make_world(dlq_max_bytes=50)
    world.mq.create_queue("q")
    dead_letter(world.mq, "q", b"a", b"b" * 100)
    world.maintain()
    assert counts(world.mq, "q") == {}


def test_bytes_at_the_bound_are_kept(make_world: Make) -> None:
    world = make_world(dlq_max_bytes=200)
    world.mq.create_queue("q")
    sent = dead_letter(world.mq, "q", b"a", b"b" * 100, b"c" * 100)
    world.maintain()
    assert dead(world.mq) == sent[1:]


def test_age_counts_from_the_send_and_is_strict(make_world: Make) -> None:
    world = make_world(dlq_max_age="1h")
    mq = world.mq
    mq.create_queue("q")
    dead_letter(mq, "q", b"old")
    world.clock.advance(1)
    [fresh] = dead_letter(mq, "q", b"fresh")
    world.later(HOUR)
    assert dead(mq) == [fresh]
    world.later(1)
    assert dead(mq) == []


def test_a_queue_has_its_own_bounds_inherits_or_opts_out(make_world: Make) -> None:
    world = make_world(dlq_max_count=3)
    mq = world.mq
    mq.create_queue("own", dlq_max_count=1)
    mq.create_queue("wider", dlq_max_count=4)
    mq.create_queue("inherits")
    mq.create_queue("out", dlq_max_count=None)
    for queue in ("own", "wider", "inherits", "out"):
        dead_letter(mq, queue, b"a", b"b", b"c", b"d", b"e")
    world.maintain()
    left = [len(dead(mq, queue)) for queue in ("own", "wider", "inherits", "out")]
    assert left == [1, 4, 3, 5]


def test_a_queue_has_its_own_age(world: World) -> None:
    mq = world.mq
    mq.create_queue("bounded", dlq_max_age="1h")
    mq.create_queue("unbounded")
    for queue in ("bounded", "unbounded"):
        dead_letter(mq, queue, b"a")
    world.later(2 * HOUR)
    assert counts(mq, "bounded") == {}
    assert counts(mq, "unbounded") == {"dead_lettered": 1}


def test_a_queue_has_its_own_bytes_or_opts_out(make_world: Make) -> None:
    world = make_world(dlq_max_bytes=150, dlq_max_age="1h")
    mq = world.mq
    mq.create_queue("own", dlq_max_bytes=250)
    mq.create_queue("out", dlq_max_bytes=None, dlq_max_age=None)
    for queue in ("own", "out"):
        dead_letter(mq, queue, *(b"%d" % n * 100 for n in range(5)))
    world.maintain()
    assert [len(dead(mq, queue)) for queue in ("own", "out")] == [2, 5]
    world.later(2 * HOUR)
    assert [len(dead(mq, queue)) for queue in ("own", "out")] == [0, 5]


def test_bounds_also_hold_for_backing_queues(make_world: Make) -> None:
    world = make_world(dlq_max_count=1)
    mq = world.mq
    mq.subscribe("t", "s")
    mq.send_batch("t", [b"a", b"b"])
    for message in mq.receive("s", max_messages=2):
        message.reject()
    world.maintain()
    assert bodies(mq.peek("s")) == [b"b"]


@pytest.mark.parametrize(
    ("bounds", "left"),
    [
        ({"dlq_max_age": "1h", "dlq_max_count": 2}, 2),
        ({"dlq_max_count": 4, "dlq_max_bytes": 100}, 1),
        ({"dlq_max_age": "1ms", "dlq_max_count": 4, "dlq_max_bytes": 1000}, 0),
    ],
)
def test_the_tightest_of_several_bounds_counts(
    make_world: Make, bounds: dict[str, object], left: int
) -> None:
    world = make_world(**bounds)
    world.mq.create_queue("q")
    dead_letter(world.mq, "q", *(b"%d" % n * 100 for n in range(5)))
    world.later(MINUTE)
    assert len(dead(world.mq)) == left


@pytest.mark.parametrize(
    "bounds",
    [
        {"dlq_max_age": "1h"},
        {"dlq_max_count": 10},
        {"dlq_max_bytes": 1000},
        {"dlq_max_age": "1h", "dlq_max_count": 10, "dlq_max_bytes": 1000},
        {},
    ],
)
def test_a_queue_under_its_bounds_loses_nothing_and_logs_nothing(
    make_world: Make, bounds: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    world = make_world(**bounds)
    world.mq.create_queue("q")
    dead_letter(world.mq, "q", b"a", b"b")
    world.maintain()
    world.maintain()
    assert counts(world.mq, "q") == {"dead_lettered": 2}
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


def test_more_than_a_chunk_goes_in_one_pass(make_world: Make) -> None:
    world = make_world(dlq_max_count=1)
    mq = world.mq
    mq.create_queue("q", default_ttl="1s")
    for _ in range(10):
        mq.send_batch("q", [b""] * 250)
    world.later(1000)
    assert counts(mq, "q") == {"dead_lettered": 1}

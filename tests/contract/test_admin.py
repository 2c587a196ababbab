"""Queues: settings, listing, deletion, pause, and status."""

from __future__ import annotations

import pytest

import mqlite
from contract.looks import DAY, HOUR, MINUTE, SECOND, bodies, counts, info, one
from contract.ways import World
from mqlite import QueueConfig
from mqlite.api import MQ

EVERYTHING = {
    "lock_duration": "1m",
    "max_delivery_count": 3,
    "default_ttl": "1h",
    "dead_letter_on_expire": False,
    "dedup_window": "2m",
    "ordering_mode": "group_fifo",
    "dlq_max_age": "7d",
    "dlq_max_count": 100,
    "dlq_max_bytes": 10_000,
    "retry_initial_delay": "1s",
    "retry_max_delay": "1h",
    "retry_multiplier": 3.5,
    "retry_jitter": 0.25,
    "max_counts": "failures",
    "retain_completed": "1d",
    "keep_leases": True,
    "claim_order": "due_time",
}
AS_CONFIG = QueueConfig(
    lock_duration_ms=MINUTE,
    max_delivery_count=3,
    default_ttl_ms=HOUR,
    dead_letter_on_expire=False,
    dedup_window_ms=2 * MINUTE,
    ordering_mode="group_fifo",
    dlq_max_age_ms=7 * DAY,
    dlq_max_count=100,
    dlq_max_bytes=10_000,
    retry_initial_delay_ms=SECOND,
    retry_max_delay_ms=HOUR,
    retry_multiplier=3.5,
    retry_jitter=0.25,
    max_counts="failures",
    retain_completed_ms=DAY,
    keep_leases=True,
    claim_order="due_time",
)


def test_a_queue_has_the_documented_defaults(mq: MQ) -> None:
    mq.create_queue("q")
    assert info(mq, "q").config == QueueConfig(
        lock_duration_ms=30 * SECOND,
        max_delivery_count=10,
        default_ttl_ms=0,
        dead_letter_on_expire=True,
        dedup_window_ms=0,
        ordering_mode="standard",
        dlq_max_age_ms=0,
        dlq_max_count=0,
        dlq_max_bytes=0,
        retry_initial_delay_ms=0,
        max_counts="deliveries",
        retain_completed_ms=0,
        keep_leases=False,
        claim_order="sequence",
    )
    assert (info(mq, "q").kind, info(mq, "q").paused) == ("queue", False)


def test_every_setting_is_reported_as_given(mq: MQ) -> None:
    mq.create_queue("q", **EVERYTHING)
    assert info(mq, "q").config == AS_CONFIG


def test_a_dead_letter_bound_of_none_means_unbounded(mq: MQ) -> None:
    mq.create_queue("q", dlq_max_age=None, dlq_max_count=None, dlq_max_bytes=None)
    config = info(mq, "q").config
    assert (config.dlq_max_age_ms, config.dlq_max_count, config.dlq_max_bytes) == (-1, -1, -1)


def test_an_update_resets_documented_settings_and_keeps_additional_ones(mq: MQ) -> None:
    mq.create_queue("q", **EVERYTHING)
    mq.create_queue("q", max_delivery_count=4)
    assert info(mq, "q").config == QueueConfig(
        max_delivery_count=4,
        retry_initial_delay_ms=SECOND,
        retry_max_delay_ms=HOUR,
        retry_multiplier=3.5,
        retry_jitter=0.25,
        max_counts="failures",
        retain_completed_ms=DAY,
        keep_leases=True,
        claim_order="due_time",
    )


def test_an_update_keeps_generation_messages_and_pause(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send("q", b"a")
    mq.pause_queue("q")
    before = info(mq, "q")
    mq.create_queue("q", lock_duration="1m")
    after = info(mq, "q")
    assert (after.generation, after.paused) == (before.generation, True)
    assert counts(mq, "q") == {"active": 1}


def test_changed_settings_apply_to_the_next_claim(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"a")
    mq.create_queue("q", lock_duration="5m")
    assert one(mq, "q").locked_until_ms == world.clock.now() + 5 * MINUTE


@pytest.mark.parametrize("mode", ["standard", "group_fifo", "strict_fifo"])
def test_the_three_ordering_modes_are_accepted(mq: MQ, mode: str) -> None:
    mq.create_queue("q", ordering_mode=mode)
    assert info(mq, "q").config.ordering_mode == mode


@pytest.mark.parametrize(
    ("name", "kind", "settings"),
    [("", "queue", {}), ("q", "topic", {}), ("q", "queue", {"ordering_mode": "lifo"})],
    ids=["blank name", "kind", "ordering"],
)
def test_a_bad_queue_is_refused_and_leaves_nothing(
    mq: MQ, name: str, kind: str, settings: dict[str, str]
) -> None:
    with pytest.raises(mqlite.InvalidArgument):
        mq.create_queue(name, kind=kind, **settings)
    assert mq.list_queues() == []


def test_a_refused_update_changes_nothing(mq: MQ) -> None:
    mq.create_queue("q", lock_duration="1m")
    before = info(mq, "q")
    with pytest.raises(mqlite.InvalidArgument):
        mq.create_queue("q", ordering_mode="lifo")
    with pytest.raises(mqlite.NameConflict):
        mq.create_queue("q", kind="subscription")
    assert info(mq, "q") == before


def test_queues_are_listed_by_the_bytes_of_their_names(mq: MQ) -> None:
    names = ["b", "a", "B", "é", "z", "日", "a/b"]
    for name in names:
        mq.create_queue(name)
    mq.subscribe("t", "sub")
    listed = [entry.name for entry in mq.list_queues()]
    assert listed == sorted([*names, "sub"], key=str.encode)


def test_stats_count_by_state(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send_batch("q", [b"%d" % n for n in range(5)])
    world.clock.advance(7)
    one(mq, "q").reject()
    one(mq, "q").defer()
    one(mq, "q")
    mq.send("q", b"", at=world.at(SECOND))
    stats = mq.stats("q")
    assert (stats.queue, stats.active, stats.locked, stats.deferred) == ("q", 2, 1, 1)
    assert (stats.scheduled, stats.dead_lettered, stats.total) == (1, 1, 6)
    assert stats.oldest_message_age_ms == 7


def test_the_oldest_age_is_of_active_and_locked_messages(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    assert mq.stats("q").oldest_message_age_ms == 0
    for _ in range(3):
        mq.send("q", b"")
        world.clock.advance(SECOND)
    one(mq, "q").defer()
    held = one(mq, "q")
    assert mq.stats("q").oldest_message_age_ms == 2 * SECOND
    held.reject()
    assert mq.stats("q").oldest_message_age_ms == SECOND
    one(mq, "q").complete()
    assert mq.stats("q").oldest_message_age_ms == 0


def test_the_oldest_age_is_never_negative(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"")
    world.clock.advance(-HOUR)
    assert mq.stats("q").oldest_message_age_ms == 0


def test_stats_count_expired_messages_until_the_sweep(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"", ttl="1s")
    world.clock.advance(MINUTE)
    assert counts(mq, "q") == {"active": 1}
    assert [message.state for message in mq.peek("q")] == ["active"]


def test_peek_shows_every_state_in_order_without_locking_or_tokens(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send_batch("q", [b"dead", b"deferred", b"locked", b"active"])
    one(mq, "q").reject()
    one(mq, "q").defer()
    held = one(mq, "q")
    mq.send("q", b"scheduled", at=world.at(SECOND))
    for _ in range(2):
        found = mq.peek("q")
        assert bodies(found) == [b"dead", b"deferred", b"locked", b"active", b"scheduled"]
        assert [m.state for m in found] == [
            "dead_lettered",
            "deferred",
            "locked",
            "active",
            "scheduled",
        ]
    assert all(message.lock_token == "" for message in found)
    assert [message.locked_until_ms for message in found] == [0, 0, held.locked_until_ms, 0, 0]


@pytest.mark.parametrize("state", ["active", "locked", "deferred", "scheduled", "dead_lettered"])
def test_peek_by_state(world: World, state: str) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send_batch("q", [b"dead_lettered", b"deferred", b"locked", b"active"])
    one(mq, "q").reject()
    one(mq, "q").defer()
    one(mq, "q")
    mq.send("q", b"scheduled", at=world.at(SECOND))
    assert bodies(mq.peek("q", state=state)) == [state.encode()]


def test_peek_pages_from_a_number_and_to_a_maximum(mq: MQ) -> None:
    mq.create_queue("q")
    mq.create_queue("other")
    for n in range(50):
        mq.send("q" if n % 2 == 0 else "other", b"%d" % n)
    assert len(mq.peek("q")) == 25
    assert bodies(mq.peek("q", from_seq=4, max_messages=3)) == [b"4", b"6", b"8"]
    assert len(mq.peek("q", max_messages=1000)) == 25
    mq.send_batch("q", [b""] * 20)
    assert len(mq.peek("q")) == 32


def test_peek_of_an_unknown_queue_is_empty(mq: MQ) -> None:
    assert mq.peek("nowhere") == []
    assert mq.peek("nowhere", state="active") == []


@pytest.mark.parametrize(
    "call",
    ["receive", "stats", "redrive", "purge", "pause_queue", "resume_queue", "delete_queue"],
)
def test_an_unknown_queue_is_not_found(mq: MQ, call: str) -> None:
    with pytest.raises(mqlite.NotFound):
        getattr(mq, call)("nowhere")


def test_receive_deferred_on_an_unknown_queue_is_not_found(mq: MQ) -> None:
    with pytest.raises(mqlite.NotFound):
        mq.receive_deferred("nowhere", [])


def test_status_tells_about_the_store(world: World) -> None:
    mq = world.mq
    mq.create_queue("a")
    mq.create_queue("b")
    mq.subscribe("t", "s")
    status = mq.status()
    assert (status.backend, status.location) == ("local file", str(world.path))
    assert (status.schema_version, status.remote) == ("py1", False)
    assert (status.queues, status.subscriptions) == (2, 1)
    assert status.ping_ms >= 0
    assert status.db_size_bytes > 0


def test_everything_survives_reopening(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", **{**EVERYTHING, "ordering_mode": "standard"})
    mq.subscribe("t", "s")
    mq.send_batch("t", [b"a", b"b" * 5000])
    mq.send("q", b"later", at=world.at(MINUTE))
    one(mq, "s").defer()
    before = (mq.list_queues(), mq.list_subscriptions(), mq.peek("s"), mq.peek("q"))
    mq = world.reopen()
    assert (mq.list_queues(), mq.list_subscriptions(), mq.peek("s"), mq.peek("q")) == before

"""Counting the queues: where that fails, it is told apart from an empty queue."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mqlite
from contract.ways import World
from mqlite.broker.metrics import exposition
from mqlite.engine import inventory
from observation.looks import broken, ended, events, gauges


def test_queues_that_cannot_be_counted_are_unavailable_not_empty(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"x")
    sampled = mq.observe().sampled_at_ms
    world.clock.advance(1000)
    with broken(world.path):
        found = mq.observe()
        assert found.queues is None
        assert (found.collection.state, found.collection.error_code) == ("unavailable", "other")
        assert found.collection.last_success_at_ms == sampled
        assert (found.queue_count, found.subscription_count) == (0, 0)
        assert events(found) == {"enqueued": 1}
        assert ended(found)["read", "error", "other"] == 1
        assert found.runtime.read_available
    found = mq.observe()
    assert (found.collection.state, found.collection.error_code) == ("available", "")
    assert found.collection.last_success_at_ms == sampled + 1000
    assert gauges(found).active == 1


def test_before_a_first_success_there_is_none(
    reopen: Callable[..., mqlite.Embedded], path: Path
) -> None:
    mq = reopen()
    with broken(path):
        assert mq.observe().collection.last_success_at_ms == 0


def test_a_name_that_is_met_twice_is_counted_once() -> None:
    """A queue that is deleted and made again while a long count goes on in a new snapshot."""
    steps = inventory.count_messages().start()
    answers = [None, 1_000, [], [_page(1, "a", 5), _page(2, "b", 6)], [_page(9, "a", 7)]]
    for answer in (*answers, [], [], []):
        steps.send(answer)
    with pytest.raises(StopIteration) as ended:
        steps.send([])
    assert [(queue.name, queue.active) for queue in ended.value.value.queues] == [
        ("a", 7),
        ("b", 6),
    ]


def _page(id_: int, name: str, active: int) -> tuple[Any, ...]:
    return id_, name, "queue", None, active, 0, 0, 0, None


def test_a_closed_queue_cannot_be_observed(mq: mqlite.Embedded) -> None:
    mq.close()
    with pytest.raises(mqlite.Closed):
        mq.observe()


def test_inside_a_transaction_the_handle_is_refused(mq: mqlite.Embedded) -> None:
    with mq.transaction(), pytest.raises(mqlite.InTransaction):
        mq.observe()


def test_a_status_without_counts_is_one_nevertheless(world: World) -> None:
    world.mq.create_queue("q")
    with broken(world.path, "mqlite_queues"):
        status = world.mq.status()
        assert (status.queues, status.subscriptions) == (0, 0)
        assert any("could not be counted" in warning for warning in status.warnings)
        assert status.db_size_bytes > 0
    status = world.mq.status()
    assert status.queues == 1
    assert not any("counted" in warning for warning in status.warnings)


def test_a_read_that_fails_has_no_latency(
    mq: mqlite.Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(connection: sqlite3.Connection, name: str) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise error

    monkeypatch.setattr("mqlite.stores.sqlite.probing.pragma", failing)
    found = mq.observe()
    assert (found.runtime.read_available, found.runtime.ping_seconds) == (False, None)
    assert found.runtime.free_pages is None
    assert ended(found)["read", "error", "io"] == 1
    assert mq.status().ping_ms == -1
    samples = exposition(found).decode()
    assert "\nmqlite_storage_read_available 0\n" in samples
    assert "mqlite_storage_ping_seconds" not in samples

"""A database that fails: told apart from an empty one, counted, explained, recovered from."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

import mqlite
from contract.ways import World
from mqlite.clock import ManualClock
from observation.looks import broken, ended, events, gauges, operation, task


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


def test_a_failure_is_explained_without_quoting_it(mq: mqlite.Embedded, path: Path) -> None:
    with broken(path), pytest.raises(Exception, match="mqlite_messages"):
        mq.send("q", b"x")
    found = operation(mq.observe(), "write", "error", "other")
    assert found.last_error is not None
    assert (found.last_error.step, found.last_error.category) == ("send", "schema")
    assert found.last_error.sqlite_code == "SQLITE_ERROR"
    assert "mqlite_messages" not in found.last_error.explanation
    assert len(found.last_error.fingerprint) == 16


def test_a_failing_task_is_counted_once_a_pass_and_recovers(
    mq: mqlite.Embedded, path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mqlite")
    mq.maintain()
    succeeded = clock.now()
    with broken(path):
        for _ in range(10):
            clock.advance(1000)
            mq.maintain()
        found = task(mq.observe(), "locks")
        assert (found.runs.success, found.runs.error) == (1, 10)
        assert found.last_success_at_ms == succeeded
        diagnostics = found.diagnostics
        assert diagnostics is not None
        assert (diagnostics.outcome, diagnostics.consecutive_failures) == ("failed", 10)
        assert diagnostics.recovered_at_ms == 0
        last = [clock.now() - 1000 * ago for ago in reversed(range(8))]
        assert [failure.at_ms for failure in diagnostics.failures] == last
        assert {failure.step for failure in diagnostics.failures} == {"expire"}
    mq.maintain()
    mq.maintain()
    found = task(mq.observe(), "locks")
    assert (found.runs.success, found.runs.error) == (3, 10)
    assert found.diagnostics is not None
    assert (found.diagnostics.outcome, found.diagnostics.consecutive_failures) == ("ok", 0)
    assert found.diagnostics.recovered_at_ms == clock.now()
    assert len(found.diagnostics.failures) == 8
    recoveries = [m for m in caplog.messages if m.startswith("maintenance.recovered")]
    assert sum("task=locks failures=10" in message for message in recoveries) == 1


def test_a_task_without_a_pass_has_none(mq: mqlite.Embedded) -> None:
    found = task(mq.observe(), "retention")
    assert found.diagnostics is not None
    assert (found.diagnostics.outcome, found.diagnostics.last_run_at_ms) == ("never", 0)


def test_a_closed_queue_cannot_be_observed(mq: mqlite.Embedded) -> None:
    mq.close()
    with pytest.raises(mqlite.Closed):
        mq.observe()


def test_inside_a_transaction_the_handle_is_refused(mq: mqlite.Embedded) -> None:
    with mq.transaction(), pytest.raises(mqlite.InTransaction):
        mq.observe()

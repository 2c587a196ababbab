"""Passes of the maintenance: how they ended, how late they are, and how a task recovers."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

import pytest

import mqlite
from mqlite.clock import ManualClock
from mqlite.errors import Canceled, Closed
from mqlite.observation.maintenance import MaintenanceMeter
from mqlite.observation.reporting import Reporter
from mqlite.observation.schema import Runs
from observation.looks import broken, task


def test_passes_are_counted(mq: mqlite.Embedded, clock: ManualClock) -> None:
    mq.maintain()
    clock.advance(7)
    mq.maintain()
    found = task(mq.observe(), "locks")
    assert (found.runs.success, found.runs.error, found.runs.interrupted) == (2, 0, 0)
    assert found.duration_seconds.count == 2
    assert found.last_success_at_ms == clock.now()
    assert not found.enabled  # by an injected clock nothing runs by itself


def test_a_task_without_a_pass_has_none(mq: mqlite.Embedded) -> None:
    found = task(mq.observe(), "retention")
    assert found.diagnostics is not None
    assert (found.diagnostics.outcome, found.diagnostics.last_run_at_ms) == ("never", 0)


def test_tasks_run_by_themselves_by_the_clock_of_the_system(path: Path) -> None:
    with mqlite.open(path) as mq:
        assert all(each.enabled for each in mq.observe().maintenance)
    with mqlite.open(":memory:") as mq:
        disabled = [each.task for each in mq.observe().maintenance if not each.enabled]
        assert disabled == ["reclaim"]


def test_work_that_is_overdue_is_a_lag(mq: mqlite.Embedded, clock: ManualClock) -> None:
    mq.create_queue("q", lock_duration="1s")
    mq.send("q", b"x")
    mq.receive("q")
    clock.advance(900)
    assert task(mq.observe(), "locks").lag_seconds == 0
    clock.advance(2100)
    found = mq.observe()
    assert task(found, "locks").lag_seconds == 2
    assert task(found, "ttl").lag_seconds == 0
    assert task(found, "dedup").lag_seconds is None
    mq.maintain()
    assert task(mq.observe(), "locks").lag_seconds == 0


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


@pytest.mark.parametrize("why", [Canceled("stopped"), Closed(), KeyboardInterrupt()], ids=repr)
def test_an_interrupted_pass_is_neither_a_success_nor_a_failure(
    why: BaseException, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mqlite")
    meter = MaintenanceMeter(clock.now, Reporter(logging.getLogger("mqlite")))
    with suppress(KeyboardInterrupt), meter.run("locks"):
        raise why
    [found] = [each for each in meter.snapshot({}) if each.task == "locks"]
    assert found.runs == Runs(success=0, error=0, interrupted=1)
    assert found.last_success_at_ms == 0
    assert found.diagnostics is not None
    assert (found.diagnostics.outcome, found.diagnostics.failures) == ("interrupted", [])
    [line] = caplog.messages
    assert line.startswith("maintenance.interrupted")
    assert "task=locks" in line

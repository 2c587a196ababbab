"""Plans, passes and deadlines; the log, free pages, and other connections' commits."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlite.clock import ManualClock, SystemClock
from mqlite.engine.steps import (
    Changed,
    Due,
    Earliest,
    Event,
    Operation,
    Pass,
    Pause,
    Plan,
    Ready,
    Resolve,
    Statement,
    Steps,
)
from mqlite.errors import Canceled, NotFound, Unavailable
from mqlite.observation.maintenance import MaintenanceMeter
from mqlite.observation.reporting import Reporter
from mqlite.stores.deadlines import NEVER, UNKNOWN, Deadlines
from mqlite.stores.effects import decode, encode
from mqlite.stores.maintenance import Maintenance
from mqlite.stores.plans import Stop, drive, drive_async
from mqlite.stores.sqlite import SqliteStore
from patience import PATIENCE_S, eventually, start

from .toys import bodies, failing, foreign, put, queue

INSERT_EFFECTS = "INSERT INTO mqlite_effects (effects) VALUES (CAST(? AS TEXT))"


def moving(done: list[int]) -> Plan[tuple[int, bool]]:
    try:
        for number in range(3):
            done += yield put(bytes([number]))
            yield Pause(1000)
    except Canceled:
        return len(done), False
    return len(done), True


def test_a_plan_runs_its_operations_and_pauses(store: SqliteStore, clock: ManualClock) -> None:
    done: list[int] = []
    driven = start(lambda: drive(moving(done), store.run, clock, Stop(threading.Event())))
    for count in (1, 2, 3):
        eventually(lambda: clock.waiting == 1)
        assert len(done) == count
        clock.advance(1000)
        eventually(lambda count=count: len(done) > count or driven.done())
    assert driven.result() == (3, True)


def test_a_stopped_plan_answers_with_what_it_has_done(
    store: SqliteStore, clock: ManualClock
) -> None:
    stop, done = Stop(threading.Event()), []
    driven = start(lambda: drive(moving(done), store.run, clock, stop))
    eventually(lambda: clock.waiting == 1)
    stop.request()
    assert driven.result() == (1, False)


def test_a_stopped_plan_that_does_not_mind_is_canceled(
    store: SqliteStore, clock: ManualClock
) -> None:
    def plan() -> Plan[None]:
        yield put(b"never")

    stop = Stop(threading.Event())
    stop.request()
    with pytest.raises(Canceled):
        drive(plan(), store.run, clock, stop)
    assert store.run(bodies()) == []


def test_an_operations_error_is_the_plans(store: SqliteStore, clock: ManualClock) -> None:
    def plan() -> Plan[str]:
        try:
            yield failing(NotFound("no"))
        except NotFound:
            return "handled"
        return "not raised"

    assert drive(plan(), store.run, clock, Stop(threading.Event())) == "handled"


def test_a_plan_for_a_task(store: SqliteStore, clock: ManualClock) -> None:
    async def scenario() -> None:
        stop, done = Stop(asyncio.Event()), []
        driven = asyncio.ensure_future(drive_async(moving(done), store.run_async, clock, stop))
        await asyncio.to_thread(eventually, lambda: clock.waiting == 1)
        clock.advance(1000)
        await asyncio.to_thread(eventually, lambda: len(done) == 2 and clock.waiting == 1)
        stop.request()
        assert await driven == (2, False)

    asyncio.run(scenario())


def test_deadlines_are_unknown_until_a_pass_has_looked() -> None:
    deadlines, sooner = Deadlines(), []
    deadlines.on_sooner = lambda: sooner.append(True)
    deadlines.note("lock", 50)
    assert deadlines.earliest("lock") == UNKNOWN
    with deadlines.looking("lock"):
        assert deadlines.earliest("lock") == UNKNOWN
        deadlines.note("lock", 90)
    assert deadlines.earliest("lock") == 90
    deadlines.note("lock", 95)
    assert (deadlines.earliest("lock"), sooner) == (90, [])
    deadlines.note("lock", 70)
    assert (deadlines.earliest("lock"), sooner) == (70, [True])
    with deadlines.looking("lock"):
        pass
    assert deadlines.earliest("lock") == NEVER
    with pytest.raises(ValueError, match="broken"), deadlines.looking("lock"):
        raise ValueError("broken")
    assert deadlines.earliest("lock") == UNKNOWN


def test_committed_deadlines_reach_the_operations(any_store: SqliteStore) -> None:
    def due(at: int) -> Operation[int]:
        def steps() -> Steps[int]:
            yield Due("lock", at)
            return (yield Earliest("lock"))

        return Operation("due", steps)

    def sweep() -> Plan[None]:
        yield due(500)

    any_store.maintain_with([Pass("locks", 1000, sweep, "lock")])
    assert any_store.run(due(900)) == UNKNOWN
    any_store.maintain()
    assert any_store.run(due(400)) == 500
    assert any_store.run(due(900)) == 400


def test_all_passes_run_once_in_order_and_failures_are_logged(
    any_store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[str] = []

    def plan(name: str) -> Plan[None]:
        ran.append(name)
        if name == "second":
            raise ValueError("broken")
        if name == "third":
            raise Unavailable("busy", reason="database_locked")
        yield put(name.encode())

    names = ["first", "second", "third", "fourth"]
    any_store.maintain_with([Pass(name, 1000, lambda name=name: plan(name)) for name in names])
    any_store.maintain()
    assert ran == names
    assert any_store.run(bodies()) == [b"first", b"fourth"]
    assert "maintenance.failure at_ms=1700000000000 task=second" in caplog.text
    assert "maintenance.failure at_ms=1700000000000 task=third" in caplog.text


class Background:
    """A maintenance thread by the system's clock, with one pass that counts its runs."""

    def __init__(self, every_ms: int, due: str | None) -> None:
        self.runs = 0
        self.deadlines = Deadlines()
        self.clock = SystemClock()
        self.maintenance = Maintenance(
            [Pass("pass", every_ms, self.plan, due)],
            lambda operation: None,
            self.clock,
            self.deadlines,
            MaintenanceMeter(self.clock.now, Reporter(logging.getLogger("test"))),
        )
        self.maintenance.start()

    def plan(self) -> Iterator[Any]:
        self.runs += 1
        yield from ()


def test_a_pass_runs_when_work_falls_due_long_before_its_cadence() -> None:
    background = Background(3_600_000, "lock")
    eventually(lambda: background.deadlines.earliest("lock") == NEVER)
    assert background.runs == 1
    background.deadlines.note("lock", background.clock.now() + 20)
    eventually(lambda: background.runs == 2)
    background.maintenance.stop()


def test_a_pass_runs_at_its_cadence_and_when_asked() -> None:
    background = Background(10, None)
    eventually(lambda: background.runs >= 3)
    background.maintenance.stop()
    background = Background(3_600_000, None)
    background.maintenance.ask("pass")
    eventually(lambda: background.runs == 1)
    background.maintenance.stop()


def test_a_store_with_its_own_clock_maintains_itself(path: Path) -> None:
    store, ran = SqliteStore(path), threading.Event()

    def plan() -> Plan[None]:
        yield put(b"swept")
        ran.set()

    store.maintain_with([Pass("sweep", 1000, plan, "lock")])
    assert ran.wait(PATIENCE_S)
    store.close()


def test_effects_survive_the_database() -> None:
    effects = [Ready(1, 2), Event("put", 1), Due("lock", 5), Changed("q")]
    assert decode(encode(effects)) == effects
    for text in (b"{", b"[1]", b'[["Unknown", 1]]', b'[["Ready"]]', b"\xff", b"[" * 100_000):
        with pytest.raises(ValueError, match=r"Expected|Invalid|malformed|truncated|deeply"):
            decode(text)


def test_foreign_commits_are_noticed_and_told(
    store: SqliteStore, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Event] = []
    store.events.append(told.extend)
    other = foreign(path)
    other.execute("BEGIN IMMEDIATE")
    other.execute(INSERT_EFFECTS, (encode([Event("put", 1), Ready(1, 1)]),))
    other.execute("ROLLBACK")
    store.look()
    assert told == []
    first, last = encode([Event("put", 1), Ready(1, 1)]), encode([Event("put", 2)])
    for text in (first, "nonsense", b"\xff", b"[" * 100_000, last):
        other.execute(INSERT_EFFECTS, (text,))
    with store.waiters.join(1) as place:
        store.look()
        assert place.woken
    assert told == [Event("put", 1), Event("put", 2)]
    assert "unreadable" in caplog.text
    assert other.execute("SELECT count(*) FROM mqlite_effects").fetchone() == (0,)
    assert any("WAL-reset" in text for text in store.status().warnings)
    other.close()


def test_a_group_takes_foreign_effects_along(store: SqliteStore, path: Path) -> None:
    told: list[Event] = []
    store.events.append(told.extend)
    store.run(queue())

    def resolve() -> Steps[Any]:
        return (yield Resolve("q"))

    other = foreign(path)
    assert store.run(Operation("resolve", resolve)) is not None
    other.execute("UPDATE mqlite_queues SET paused = 1")
    other.execute(INSERT_EFFECTS, (encode([Changed("q"), Event("paused", 1)]),))
    assert asyncio.run(store.run_async(Operation("resolve", resolve))).paused
    assert told == [Event("paused", 1)]
    other.close()


def test_effects_left_by_a_crash_are_told_on_open(path: Path) -> None:
    SqliteStore(path).close()
    other = foreign(path)
    other.execute(INSERT_EFFECTS, (encode([Changed("q")]),))
    store = SqliteStore(path)
    assert other.execute("SELECT count(*) FROM mqlite_effects").fetchone() == (0,)
    other.close()
    store.close()


def test_a_foreign_commit_is_noticed_by_itself(path: Path) -> None:
    store = SqliteStore(path)
    store.maintain_with([])
    other = foreign(path)
    with store.waiters.join(1) as place:
        waiting = start(place.wait, 2**62)
        store.expect_foreign_commit()
        other.execute(INSERT_EFFECTS, (encode([Ready(1, 1)]),))
        waiting.result()
    other.close()
    store.close()


def log_frames(path: Path) -> int:
    return path.with_name("mq.db-wal").stat().st_size


def test_a_checkpoint_lets_the_log_start_again(store: SqliteStore, path: Path) -> None:
    for _ in range(10):
        store.run(put(b"x" * 1_000_000))
    assert store.status().wal_size_bytes == log_frames(path) > 8 * 1024 * 1024
    house = store._house
    assert house is not None
    assert house.pressing()
    assert house.checkpoint()
    store.run(put(b"y"))
    assert log_frames(path) <= 4 * 1024 * 1024


def test_writers_go_on_while_the_log_is_pushed_to_the_disk(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[list[int]] = []
    push = os.fsync

    def write_meanwhile(file: int) -> None:
        written.append(start(lambda: store.run(put(b"meanwhile"))).result())
        push(file)

    store.run(put(b"before"))
    monkeypatch.setattr(os, "fsync", write_meanwhile)
    assert store._house is not None
    assert store._house.checkpoint()
    assert len(written) == 1


def test_a_foreign_snapshot_keeps_the_log_but_stops_nothing(store: SqliteStore, path: Path) -> None:
    other = foreign(path)
    store.run(put(b"x"))
    other.execute("BEGIN")
    other.execute("SELECT * FROM mqlite_payloads").fetchall()
    store.run(put(b"x" * 9_000_000))
    house = store._house
    assert house is not None
    assert not house.checkpoint()
    assert not house.pressing()
    other.execute("COMMIT")
    assert house.checkpoint()
    other.close()


def test_a_quiet_moment_is_used_for_a_checkpoint(store: SqliteStore) -> None:
    house = store._house
    assert house is not None
    store.run(put(b"x"))
    store.maintain()
    assert house._done != store._committer.commits
    store.maintain()
    assert house._done == store._committer.commits


def test_a_large_log_calls_for_a_checkpoint(path: Path) -> None:
    store = SqliteStore(path)
    store.maintain_with([])
    for _ in range(65):
        store.run(put(b"x" * 200_000))
    assert store._house is not None
    eventually(lambda: store._house is not None and store._house._done > 0)
    store.close()


def clear(store: SqliteStore) -> None:
    def steps() -> Steps[None]:
        yield Statement("DELETE FROM mqlite_payloads")

    store.run(Operation("clear", steps))


@pytest.mark.parametrize("how", ["maintain", "vacuum", "full"])
def test_free_pages_go_back_to_the_disk(store: SqliteStore, path: Path, how: str) -> None:
    keys = store.run(put(*(b"x" * 4096 for _ in range(500))))
    store.vacuum()
    before = path.stat().st_size
    clear(store)
    assert store.status().free_pages >= 256
    if how == "maintain":
        store.maintain()
    else:
        store.vacuum(full=how == "full")
    assert store.status().free_pages <= 16
    assert path.stat().st_size < before
    assert store.run(put(b"next")) == [keys[-1] + 1]


def test_few_free_pages_stay(store: SqliteStore) -> None:
    store.run(put(*(b"x" * 4096 for _ in range(100))))
    clear(store)
    free = store.status().free_pages
    store.maintain()
    assert store.status().free_pages == free > 0


def test_memory_has_nothing_to_vacuum() -> None:
    store = SqliteStore(":memory:")
    store.vacuum()
    store.vacuum(full=True)
    status = store.status(3, 2)
    assert (status.backend, status.location, status.queues, status.subscriptions) == (
        "memory",
        ":memory:",
        3,
        2,
    )
    assert status.db_size_bytes == 0
    store.close()


def test_status_of_a_file(store: SqliteStore, path: Path) -> None:
    status = store.status()
    assert (status.backend, status.location) == ("local file", str(path))
    assert status.schema_version == "py1"
    assert status.ping_ms >= 0
    assert status.db_size_bytes > status.wal_size_bytes > 0

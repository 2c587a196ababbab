"""Operations of the engine by how they ended, their retries, the connections and the sizes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import mqlite
from mqlite.clock import ManualClock
from mqlite.errors import Unavailable
from observation.looks import broken, ended, events, locked, operation
from patience import PATIENCE_S, start


def test_operations_are_counted_by_kind_and_timed(mq: mqlite.Embedded) -> None:
    mq.send("q", b"x")
    before = mq.observe()
    for _ in range(3):
        mq.send("q", b"x")
    mq.peek("q")
    after = mq.observe()
    for kind, number in (("write", 3), ("read", 1 + 2)):  # an observation reads twice
        had, has = operation(before, kind), operation(after, kind)
        assert has.count - had.count == number
        assert has.duration_seconds.sum > had.duration_seconds.sum


def test_a_rollback_adds_nothing_and_is_a_rejected_transaction(mq: mqlite.Embedded) -> None:
    before = mq.observe()
    with pytest.raises(ZeroDivisionError), mq.transaction() as tx:
        tx.send("q", bytes(1 // (tx.send("q", b"a") - 1)))
    with mq.transaction() as tx:
        tx.send("q", b"b")
        with pytest.raises(mqlite.NotFound):
            tx.send("nowhere", b"c")
    found = mq.observe()
    assert events(found) == {"enqueued": 1}
    assert ended(found)["transaction", "ok", ""] == 1
    assert ended(found)["transaction", "rejected", "application"] == 1
    # What is done inside is the transaction's own work.
    assert operation(found, "write").count == operation(before, "write").count


def test_a_group_that_is_run_again_counts_once_and_tells_of_its_retries(path: Path) -> None:
    async def run() -> mqlite.observation.schema.Observation:
        async with await mqlite.open_async(path, clock=ManualClock()) as mq:
            for name in "abc":
                await mq.create_queue(name)
                await mq.send(name, b"so that the name is known")
            _fail_whole_transactions(path, "boom")
            subjects = dict(zip("abc", ("", "boom", ""), strict=True))
            with locked(path):  # they gather in front of it
                sends = [
                    asyncio.create_task(mq.send(name, b"x", subject=subject))
                    for name, subject in subjects.items()
                ]
                await _until(lambda: len(mq.core.store._line) == 3)
                await _until(lambda: mq.core.store.recorder.storage._pending_retries > 3)
            results = await asyncio.gather(*sends, return_exceptions=True)
            assert isinstance(results[1], sqlite3.Error)
            return await mq.observe()

    found = asyncio.run(run())
    assert [events(found, name)["enqueued"] for name in "abc"] == [2, 1, 2]
    assert sum(each.retries for each in found.storage.operations) > 3


def _fail_whole_transactions(path: Path, subject: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TRIGGER fail BEFORE INSERT ON mqlite_messages"
            f" WHEN NEW.subject = '{subject}' BEGIN SELECT RAISE(ROLLBACK, 'no'); END"
        )


def test_a_lock_that_somebody_else_holds_is_an_error_with_retries(
    mq: mqlite.Embedded, path: Path
) -> None:
    with locked(path), pytest.raises(Unavailable):
        mq.core.store.run(_settings(mq), timeout=0.06)
    found = operation(mq.observe(), "write", "error", "busy")
    assert found.count == 1
    assert found.retries > 0
    assert found.last_error is not None
    assert (found.last_error.category, found.last_error.step) == ("busy", "create_queue")


def _settings(mq: mqlite.Embedded) -> Any:
    return mq.core.calls.create_queue("q", "queue", {})


def test_a_task_that_is_cancelled_is_an_interrupted_operation(path: Path) -> None:
    async def run() -> mqlite.observation.schema.Observation:
        async with await mqlite.open_async(path, clock=ManualClock()) as mq:
            await mq.create_queue("q")
            with locked(path):
                asking = asyncio.create_task(mq.pause_queue("q"))
                await _until(lambda: len(mq.core.store._line) == 1)
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
            return await mq.observe()

    found = asyncio.run(run())
    assert ended(found)["write", "error", "canceled"] == 1


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what it waits for sets no event
            await asyncio.sleep(0.001)


def test_a_failure_is_explained_without_quoting_it(mq: mqlite.Embedded, path: Path) -> None:
    with broken(path), pytest.raises(Exception, match="mqlite_messages"):
        mq.send("q", b"x")
    found = operation(mq.observe(), "write", "error", "other")
    assert found.last_error is not None
    assert (found.last_error.step, found.last_error.category) == ("send", "schema")
    assert found.last_error.sqlite_code == "SQLITE_ERROR"
    assert "mqlite_messages" not in found.last_error.explanation
    assert len(found.last_error.fingerprint) == 16


def test_waits_for_the_writer_are_counted(path: Path) -> None:
    async def run() -> mqlite.observation.schema.Observation:
        async with await mqlite.open_async(path, clock=ManualClock()) as mq:
            await mq.create_queue("q")
            for _ in range(3):
                await mq.send("q", b"x")
            return await mq.observe()

    pool = asyncio.run(run()).storage.pool
    assert pool.waits >= 4
    assert pool.wait_duration_seconds > 0
    assert (pool.max_open, pool.open, pool.in_use + pool.idle) == (4, 4, 4)


def test_a_queue_in_memory_has_one_connection_and_no_file() -> None:
    with mqlite.open(":memory:", clock=ManualClock()) as mq:
        found = mq.observe()
    assert found.storage.pool.max_open == 1
    assert found.backend == "memory"
    assert (found.runtime.db_size_available, found.runtime.db_size_bytes) == (False, None)
    assert found.runtime.wal_size_bytes is None


def test_a_queue_on_a_file_tells_its_size(mq: mqlite.Embedded, path: Path) -> None:
    found = mq.observe()
    sizes = [path.with_name(path.name + end).stat().st_size for end in ("", "-wal", "-shm")]
    assert found.backend == "local file"
    assert (found.runtime.db_size_bytes, found.runtime.wal_size_bytes) == (sum(sizes), sizes[1])


def test_a_file_that_is_taken_away_has_no_size(mq: mqlite.Embedded, path: Path) -> None:
    aside = path.with_name("aside")
    path.rename(aside)
    found = mq.observe().runtime
    aside.rename(path)
    assert (found.db_size_available, found.db_size_bytes) == (False, None)
    assert mq.observe().runtime.db_size_available


def test_a_database_in_use_is_probed_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory there is one connection, and somebody has a transaction open on it."""
    monkeypatch.delattr("mqlite.stores.sqlite.store.WAIT_S")  # operations wait for longer
    monkeypatch.setattr("mqlite.stores.sqlite.probing.PROBE_WAIT_S", 0.0)
    with mqlite.open(":memory:", clock=ManualClock()) as mq, mq.transaction():
        assert start(mq.core.store.probe).result().ping_s is None


def test_files_that_somebody_took_away_have_no_size(mq: mqlite.Embedded, path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()
    runtime = mq.observe().runtime
    assert (runtime.db_size_available, runtime.db_size_bytes) == (False, None)
    assert runtime.wal_size_bytes is None

"""What is counted, and what is not: rollbacks, replays, retries, refusals."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import mqlite
from contract.looks import NOBODY, one
from contract.ways import PATIENCE, World
from mqlite import OutMessage
from mqlite.clock import ManualClock
from mqlite.engine import inventory
from mqlite.engine.steps import Event
from mqlite.errors import Unavailable
from mqlite.observation.effects import MAX_GONE, EffectMeter
from observation.looks import ended, events, locked, operation, task


def test_a_replay_adds_nothing(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send_batch("q", [b"a", b"b"])
    for _ in range(2):
        [first] = mq.receive("q", max_messages=1, attempt_id="again")
    for _ in range(2):
        first.complete()
    held = mq.receive("q", max_messages=1)
    for _ in range(3):
        held[0].reject()
    expected = {"enqueued": 2, "delivered": 2, "completed": 1, "rejected": 1, "dead_lettered": 1}
    assert events(mq.observe()) == expected


def test_what_is_refused_adds_nothing(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", ordering_mode="group_fifo")
    with pytest.raises(mqlite.GroupRequired):
        mq.send_batch("q", [OutMessage(group_id="g"), b""])
    with pytest.raises(mqlite.LockLost):
        mq.complete("q", 1, NOBODY)
    found = mq.observe()
    assert events(found) == {}
    assert ended(found)["write", "rejected", "application"] == 2


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


def test_a_member_that_fails_inside_a_transaction_takes_its_effects_along(
    mq: mqlite.Embedded,
) -> None:
    mq.create_queue("q", dedup_window="1h")
    mq.send("q", b"a", message_id="1")
    held = one(mq, "q")
    with mq.transaction() as tx:
        tx.send("q", b"b", message_id="2")
        with pytest.raises(mqlite.DedupConflict):
            tx.send("q", b"c", message_id="2")
        with pytest.raises(mqlite.LockLost):
            tx.complete("q", held.seq_number, NOBODY)
        tx.complete("q", *held.lease)
    assert events(mq.observe()) == {"enqueued": 2, "delivered": 1, "completed": 1}


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - what it waits for sets no event
            await asyncio.sleep(0.001)


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


def test_effects_of_a_joined_transaction_are_counted_with_its_commit(
    mq: mqlite.Embedded, path: Path
) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        mq.join(connection).send("q", b"a")
        connection.rollback()
        connection.execute("BEGIN IMMEDIATE")
        mq.join(connection).send("q", b"b")
        assert events(mq.observe()) == {}
        connection.commit()
        mq.core.store.look()
        assert events(mq.observe()) == {"enqueued": 1}


def test_every_event_of_a_queue_is_there_before_it_happens(mq: mqlite.Embedded) -> None:
    found = [each for each in mq.observe().messages if each.queue == "q"]
    assert {each.count for each in found} == {0}
    assert [each.event for each in found] == list(mqlite.observation.vocabulary.EVENTS)


def test_the_counts_of_a_deleted_queue_go_on_under_its_name(world: World) -> None:
    mq = world.mq
    for number in (1, 2):
        mq.create_queue("q")
        mq.send_batch("q", [b"x"] * number)
        mq.complete_batch("q", mq.receive("q", max_messages=9))
        mq.delete_queue("q")
        world.maintain()
        assert events(mq.observe())["completed"] == 2 * number - 1
    mq.create_queue("q")
    mq.send("q", b"x")
    assert events(mq.observe())["enqueued"] == 4


def test_deleted_queues_are_remembered_up_to_a_bound(mq: mqlite.Embedded) -> None:
    for number in range(MAX_GONE + 1):
        mq.create_queue(f"q{number}")
        one_after_the_other(mq, f"q{number}")
    found = mq.observe()
    assert events(found, "q0") == {}
    assert events(found, f"q{MAX_GONE}") == {"enqueued": 1, "delivered": 1, "receive_deleted": 1}


def one_after_the_other(mq: mqlite.Embedded, queue: str) -> None:
    mq.send(queue, b"")
    one(mq, queue, mode="receive_and_delete")
    mq.delete_queue(queue)


def test_counters_start_anew_when_the_queue_is_opened(
    reopen: Callable[..., mqlite.Embedded], clock: ManualClock
) -> None:
    mq = reopen()
    mq.create_queue("q")
    mq.send("q", b"x")
    mq.receive("q")
    clock.advance(5)
    mq = reopen()
    found = mq.observe()
    assert found.started_at_ms == clock.now()
    assert events(found) == {"recovered": 1}
    assert mq.stats("q").active == 1


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


def test_filters_that_fail_are_counted_by_message(world: World) -> None:
    mq = world.mq
    mq.subscribe("t", "ok", expr='subject == "a"')
    mq.subscribe("t", "fails", expr="int(subject) > 1")
    mq.send_batch("t", [OutMessage(subject="a"), OutMessage(subject="b")])
    with closing(sqlite3.connect(world.path)) as connection, connection:
        connection.execute("UPDATE mqlite_subscriptions SET expr = '(' WHERE name = 'fails'")
    world.close()
    mq = world.open()
    mq.send("t", b"", subject="a")
    mq.test_filter("(", b"")
    with pytest.raises(mqlite.InvalidArgument):
        mq.subscribe("t", "new", expr="(")
    failures = {each.stage: each.count for each in mq.observe().filters}
    assert failures == {"compile": 1, "evaluate": 0}


def test_a_filter_that_fails_for_a_message(mq: mqlite.Embedded) -> None:
    mq.subscribe("t", "fails", expr="int(subject) > 1")
    mq.send_batch("t", [OutMessage(subject=each) for each in ("a", "b", "7")])
    failures = {each.stage: each.count for each in mq.observe().filters}
    assert failures == {"compile": 0, "evaluate": 2}


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


def test_passes_are_counted(mq: mqlite.Embedded, clock: ManualClock) -> None:
    mq.maintain()
    clock.advance(7)
    mq.maintain()
    found = task(mq.observe(), "locks")
    assert (found.runs.success, found.runs.error, found.runs.interrupted) == (2, 0, 0)
    assert found.duration_seconds.count == 2
    assert found.last_success_at_ms == clock.now()
    assert not found.enabled  # by an injected clock nothing runs by itself


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


def test_a_look_during_a_deletion_finds_each_count_once() -> None:
    meter = EffectMeter(dict.fromkeys(range(3000), "q").get)
    looks: list[int] = []
    deleting = threading.Event()

    def look() -> None:
        deleting.set()
        while deleting.is_set():
            looks.append(sum(each.count for each in meter.snapshot({}) if each.queue == "q"))

    looker = threading.Thread(target=look)
    looker.start()
    deleting.wait()
    for number in range(3_000):
        meter.count(Event("enqueued", number))
        meter.gone(number)
    deleting.clear()
    looker.join()
    assert looks == sorted(looks)


def test_a_name_that_is_met_twice_is_counted_once() -> None:
    """A queue that is deleted and made again while a long count goes on in a new snapshot."""
    steps = inventory.take().start()
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


def test_a_file_that_is_taken_away_has_no_size(mq: mqlite.Embedded, path: Path) -> None:
    aside = path.with_name("aside")
    path.rename(aside)
    found = mq.observe().runtime
    aside.rename(path)
    assert (found.db_size_available, found.db_size_bytes) == (False, None)
    assert mq.observe().runtime.db_size_available

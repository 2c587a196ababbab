"""Transactions a caller holds, and closing."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from mqlite.engine.steps import Event, Operation, Statement, Steps
from mqlite.errors import (
    Closed,
    DatabaseLocked,
    InTransaction,
    NotFound,
    TransactionClosed,
    Unavailable,
)
from mqlite.stores.sqlite import SqliteStore, transaction as transactions
from patience import PATIENCE_S, eventually, start

from .toys import bodies, failing, held, put, running


def test_operations_and_the_callers_sql_commit_together(any_store: SqliteStore) -> None:
    told: list[Event] = []
    any_store.events.append(told.extend)
    tx = any_store.begin()
    tx.connection.execute("CREATE TABLE orders (x)")
    tx.run(put(b"order"))
    with pytest.raises(NotFound):
        tx.run(failing(NotFound("alone"), after=b"torn"))
    assert told == []
    tx.commit()
    assert told == [Event("put", 1, 1)]
    assert any_store.run(bodies()) == [b"order"]


def test_a_rollback_leaves_nothing(any_store: SqliteStore) -> None:
    told: list[Event] = []
    any_store.events.append(told.extend)
    tx = any_store.begin()
    tx.run(put(b"never"))
    tx.rollback()
    tx.rollback()
    assert any_store.run(bodies()) == []
    assert told == []


def test_use_after_the_end_is_refused(any_store: SqliteStore) -> None:
    tx = any_store.begin()
    tx.commit()
    for use in (tx.commit, lambda: tx.run(put(b"x"))):
        with pytest.raises(TransactionClosed):
            use()
    tx = any_store.begin()
    tx.connection.execute("COMMIT")
    with pytest.raises(TransactionClosed):
        tx.run(put(b"x"))
    any_store.run(put(b"the writer is free"))


def test_the_context_that_holds_one_is_refused_at_once(any_store: SqliteStore) -> None:
    tx = any_store.begin()
    for use in (
        lambda: any_store.run(put(b"x")),
        lambda: any_store.run(bodies()),
        lambda: asyncio.run(any_store.run_async(put(b"x"))),
        any_store.begin,
        any_store.close,
    ):
        with pytest.raises(InTransaction):
            use()
    tx.rollback()
    any_store.run(put(b"x"))


def test_other_contexts_wait(any_store: SqliteStore) -> None:
    tx = any_store.begin()
    other = start(lambda: any_store.run(put(b"other")))
    with pytest.raises(Unavailable):
        start(lambda: any_store.run(put(b"never"), timeout=0.05)).result()
    with pytest.raises(Unavailable):
        start(any_store.begin, timeout=0.05).result()
    tx.run(put(b"mine"))
    tx.commit()
    other.result()
    assert any_store.run(bodies()) == [b"mine", b"other"]


def test_it_can_be_ended_from_another_context(any_store: SqliteStore) -> None:
    tx = any_store.begin()
    start(tx.commit).result()
    any_store.run(put(b"x"))


def test_an_error_that_ends_it_is_told(any_store: SqliteStore) -> None:
    def lose() -> Steps[None]:
        yield Statement("ROLLBACK")
        raise NotFound("cause")

    tx = any_store.begin()
    with pytest.raises(NotFound):
        tx.run(Operation("lose", lose))
    with pytest.raises(TransactionClosed):
        tx.commit()
    any_store.run(put(b"x"))


def test_one_for_a_task(any_store: SqliteStore) -> None:
    async def scenario() -> None:
        tx = await any_store.begin_async()
        waiting = asyncio.ensure_future(asyncio.to_thread(lambda: None))
        await tx.run(put(b"task"))
        await tx.call(lambda: tx.connection.execute("SELECT 1"))
        with pytest.raises(InTransaction):
            await any_store.run_async(put(b"x"))
        await waiting
        await tx.commit()
        tx = await any_store.begin_async()
        await tx.run(put(b"never"))
        await tx.rollback()
        assert await any_store.run_async(bodies()) == [b"task"]

    asyncio.run(scenario())


def test_a_task_cancelled_while_it_begins_leaves_the_writer_free(any_store: SqliteStore) -> None:
    async def scenario() -> None:
        with held(any_store) as gate:
            begin = asyncio.ensure_future(any_store.begin_async())
            await asyncio.sleep(0)
            begin.cancel()
            gate.opened.set()
        for turns in range(30):
            begin = asyncio.ensure_future(any_store.begin_async())
            for _ in range(turns):
                await asyncio.sleep(0)
            begin.cancel()
            (outcome,) = await asyncio.gather(begin, return_exceptions=True)
            if not isinstance(outcome, BaseException):
                await outcome.rollback()

    asyncio.run(scenario())
    any_store.run(put(b"free"))


def test_a_task_that_is_late_and_cancelled_gives_back_no_turn(any_store: SqliteStore) -> None:
    async def scenario() -> None:
        begin = asyncio.ensure_future(any_store.begin_async(timeout=0.01))
        # Cancelled in the very turn of the loop that tells it that it is late.
        desk = any_store._writer._desk(asyncio.get_running_loop())
        late = desk._late
        desk._late = lambda: [begin.get_loop().call_soon(begin.cancel), late()][1]
        with pytest.raises(asyncio.CancelledError):
            await begin

    with held(any_store):
        asyncio.run(scenario())
        assert any_store._writer._turn.locked()
    any_store.run(put(b"free"))


def test_a_long_one_is_logged_and_shown(
    any_store: SqliteStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "LONG_S", 0.0)
    tx = any_store.begin()
    if any_store.location.path is not None:
        shown = start(any_store.status).result()
        assert any("transaction has been open" in text for text in shown.warnings)
    with caplog.at_level(logging.WARNING):
        tx.commit()
    assert caplog.text.count("transaction has been open") == 1


def test_close_refuses_wakes_waits_and_releases(path: Path) -> None:
    store = SqliteStore(path)
    place = store.waiters.join(1)
    poll = start(place.wait, 2**62)
    with held(store) as gate:
        admitted = start(lambda: store.run(put(b"admitted")))
        eventually(lambda: len(store._writer._line) == 1)
        closing = start(store.close)
        with pytest.raises(Closed):
            poll.result()
        for refused in (
            lambda: store.run(put(b"late")),
            lambda: store.run(bodies()),
            lambda: asyncio.run(store.run_async(put(b"late"))),
            store.begin,
            store.status,
            lambda: store.waiters.join(1),
        ):
            with pytest.raises(Closed):
                refused()
        with pytest.raises(DatabaseLocked):
            SqliteStore(path)
        store.post(put(b"left behind"))
        assert not closing.done()
        gate.opened.set()
    admitted.result()
    closing.result()
    store.close()
    store.post(put(b"too late"))
    assert not path.with_name("mq.db-wal").exists()
    again = SqliteStore(path)
    assert again.run(bodies()) == [b"admitted", b"left behind"]
    again.close()


def test_close_waits_for_a_transaction_but_not_for_ever(path: Path) -> None:
    store = SqliteStore(path)
    tx = store.begin()
    tx.run(put(b"durable"))
    with pytest.raises(InTransaction):
        start(store.close, timeout=0.05).result()
    with pytest.raises(DatabaseLocked):
        SqliteStore(path)
    closing = start(store.close)
    tx.commit()
    closing.result()
    again = SqliteStore(path)
    assert again.run(bodies()) == [b"durable"]
    again.close()


def test_close_from_many_threads(path: Path) -> None:
    before = threading.active_count()
    store = SqliteStore(path)
    asyncio.run(store.run_async(put(b"x")))
    closings = [start(store.close) for _ in range(8)]
    for closing in closings:
        closing.result()
    eventually(lambda: threading.active_count() == before)


def test_readers_finish_before_it_closes(path: Path) -> None:
    store = SqliteStore(path)
    entered, go_on = threading.Event(), threading.Event()

    def slow() -> Steps[Any]:
        yield Statement("SELECT 1")
        entered.set()
        assert go_on.wait(PATIENCE_S)
        return (yield Statement("SELECT 2"))

    reading = start(lambda: store.run(Operation("slow", slow, reads=True)))
    assert entered.wait(PATIENCE_S)
    with running(store.close) as closing:
        eventually(lambda: store.closing)
        assert not closing.done()
        go_on.set()
    assert reading.result() == [(2,)]

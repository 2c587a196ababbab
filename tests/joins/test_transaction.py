"""`mq.transaction()`, sync and async: one commit, and what is refused meanwhile."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import mqlite
from mqlite.stores.sqlite import transaction as transactions
from patience import start

from .helpers import Undo, bodies, waiting_receiver


def test_sql_sends_and_settlements_commit_together(
    mq: mqlite.Embedded, counted: Counter[str]
) -> None:
    mq.send("q", b"incoming")
    [incoming] = mq.receive("q")
    receiver = waiting_receiver(mq)
    lease = (incoming.seq_number, incoming.lock_token)
    counted.clear()
    with suppress(Undo), mq.transaction() as tx:
        tx.execute("INSERT INTO orders VALUES (?)", (1,))
        tx.send("q", b"never")
        tx.complete("q", *lease)
        raise Undo
    assert (mq.stats("q").total, dict(counted)) == (1, {})
    with mq.transaction() as tx:
        tx.executemany("INSERT INTO orders VALUES (?)", [(2,), (3,)])
        tx.complete("q", *lease)
        tx.send("q", b"outgoing")
        with pytest.raises(mqlite.NotFound):
            tx.send("nowhere", b"never")
        with pytest.raises(sqlite3.OperationalError):
            tx.execute("INSERT INTO nowhere VALUES (1)")
        assert tx.execute("SELECT id FROM orders").fetchall() == [(2,), (3,)]
        assert counted["enqueued"] == 0
    [outgoing] = receiver.result()
    assert outgoing.body == b"outgoing"
    assert (counted["enqueued"], counted["completed"]) == (1, 1)


def test_a_savepoint_takes_its_part_along(mq: mqlite.Embedded, counted: Counter[str]) -> None:
    receivers = [waiting_receiver(mq) for _ in range(2)]
    with mq.transaction() as tx:
        tx.send("q", b"before")
        tx.execute("SAVEPOINT mine")
        tx.send("q", b"never")
        tx.send_batch("q", [b"never", b"never"])
        tx.execute("ROLLBACK TO mine")
        tx.send("q", b"after")
        with pytest.raises(mqlite.NotFound):
            tx.send("nowhere", b"never")
        tx.execute("RELEASE mine")
    assert sorted(receiver.result()[0].body for receiver in receivers) == [b"after", b"before"]
    assert counted["enqueued"] == 2
    with mq.transaction() as tx:
        assert tx.execute("SELECT count(*) FROM mqlite_effects").fetchone() == (0,)


def test_nothing_is_told_of_a_transaction_with_savepoints_that_is_rolled_back(
    mq: mqlite.Embedded, counted: Counter[str]
) -> None:
    with suppress(Undo), mq.transaction() as tx:
        tx.execute("savepoint mine")
        tx.send("q", b"never")
        tx.execute("release savepoint mine")
        raise Undo
    mq.send("q", b"x")
    assert counted["enqueued"] == 1
    assert bodies(mq) == [b"x"]


def open_again(mq: mqlite.Embedded) -> None:
    with mq.transaction():
        pass


MEANWHILE: dict[str, Callable[[mqlite.Embedded], Any]] = {
    "send": lambda mq: mq.send("q", b"never"),
    "receive": lambda mq: mq.receive("q"),
    "peek": lambda mq: mq.peek("q"),
    "status": lambda mq: mq.status(),
    "nested": open_again,
    "close": lambda mq: mq.close(),
    "maintain": lambda mq: mq.maintain(),
}


@pytest.mark.parametrize("call", MEANWHILE.values(), ids=MEANWHILE)
def test_what_is_not_on_it_is_refused_at_once(
    mq: mqlite.Embedded, call: Callable[[mqlite.Embedded], Any]
) -> None:
    with mq.transaction() as tx:
        with pytest.raises(mqlite.InTransaction):
            call(mq)
        tx.send("q", b"goes on")
    assert bodies(mq) == [b"goes on"]


USES: dict[str, Callable[[Any], Any]] = {
    "execute": lambda tx: tx.execute("SELECT 1"),
    "executemany": lambda tx: tx.executemany("DELETE FROM orders WHERE id = ?", [(1,)]),
    "send": lambda tx: tx.send("q", b"never"),
    "complete": lambda tx: tx.complete("q", 1, "0" * 32),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("committed", [True, False])
def test_use_after_the_end_is_refused(
    mq: mqlite.Embedded, use: Callable[[Any], Any], committed: bool
) -> None:
    with suppress(Undo), mq.transaction() as tx:
        if not committed:
            raise Undo
    with pytest.raises(mqlite.TransactionClosed):
        use(tx)


def end_by_sql(mq: mqlite.Embedded, end: str) -> None:
    with mq.transaction() as tx:
        tx.execute(end)
        tx.send("q", b"never")


def test_ending_it_by_sql_is_found_out(mq: mqlite.Embedded) -> None:
    for end in ("/* hidden */ COMMIT", "-- hidden\nROLLBACK"):
        with pytest.raises(mqlite.TransactionClosed):
            end_by_sql(mq, end)
    mq.send("q", b"free")
    assert bodies(mq) == [b"free"]


def test_a_long_one_is_shown_to_others(
    mq: mqlite.Embedded, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(transactions, "LONG_S", 0.0)
    with caplog.at_level(logging.WARNING), mq.transaction() as tx:
        shown = start(mq.core.store.status).result()
        tx.send("q", b"x")
    assert any("transaction has been open" in warning for warning in shown.warnings)
    assert "transaction has been open" in caplog.text


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[mqlite.AsyncEmbedded]:
    async with await mqlite.open_async(path) as mq:
        await mq.create_queue("q")
        async with mq.transaction() as tx:
            await tx.execute("CREATE TABLE orders (id INTEGER)")
        yield mq


def test_an_async_one_commits_or_not(path: Path) -> None:
    async def scenario() -> None:
        async with opened(path) as mq:
            told: Counter[str] = Counter()
            mq.core.store.events.append(
                lambda events: [told.update({event.event: event.number}) for event in events]
            )
            receiving = asyncio.ensure_future(mq.receive("q", wait="20s"))
            with suppress(Undo):
                async with mq.transaction() as tx:
                    await tx.send("q", b"never")
                    raise Undo
            async with mq.transaction() as tx:
                await tx.executemany("INSERT INTO orders VALUES (?)", [(1,), (2,)])
                await tx.execute("SAVEPOINT mine")
                await tx.send_batch("q", [b"never", b"never"])
                await tx.execute("ROLLBACK TO mine")
                await tx.send("q", b"kept")
                assert await tx.execute("SELECT id FROM orders") == [(1,), (2,)]
            [message] = await receiving
            assert message.body == b"kept"
            assert told["enqueued"] == 1
            async with mq.transaction() as tx:
                await tx.complete("q", message.seq_number, message.lock_token)
            assert (await mq.stats("q")).total == 0

    asyncio.run(scenario())


def test_every_settlement_commits_with_an_async_one(path: Path) -> None:
    async def scenario() -> None:
        async with opened(path) as mq:
            await mq.send_batch("q", [b"done", b"bad", b"later", b"unused", b"snooze"])
            held = await mq.receive("q", max_messages=5)
            leases = [(message.seq_number, message.lock_token) for message in held]
            async with mq.transaction() as tx:
                await tx.complete("q", *leases[0])
                await tx.reject("q", *leases[1], reason="bad")
                await tx.defer("q", *leases[2])
                await tx.release("q", *leases[3])
                await tx.abandon("q", *leases[4], delay="1h", snooze=True)
            found = await mq.peek("q")
            assert [(m.state, m.delivery_count, m.failure_count) for m in found] == [
                ("dead_lettered", 1, 0),
                ("deferred", 1, 0),
                ("active", 0, 0),
                ("scheduled", 1, 0),
            ]

    asyncio.run(scenario())


async def open_again_async(mq: mqlite.AsyncEmbedded) -> None:
    async with mq.transaction():
        pass


MEANWHILE_ASYNC: dict[str, Callable[[mqlite.AsyncEmbedded], Awaitable[Any]]] = {
    "send": lambda mq: mq.send("q", b"never"),
    "receive": lambda mq: mq.receive("q", wait="20s"),
    "nested": open_again_async,
    "close": lambda mq: mq.close(),
}


@pytest.mark.parametrize("call", MEANWHILE_ASYNC.values(), ids=MEANWHILE_ASYNC)
def test_what_is_not_on_an_async_one_is_refused_at_once(
    path: Path, call: Callable[[mqlite.AsyncEmbedded], Awaitable[Any]]
) -> None:
    async def scenario() -> None:
        async with opened(path) as mq:
            async with mq.transaction() as tx:
                with pytest.raises(mqlite.InTransaction):
                    await call(mq)
                await tx.send("q", b"goes on")
            for use in (lambda: tx.execute("SELECT 1"), lambda: tx.send("q", b"never")):
                with pytest.raises(mqlite.TransactionClosed):
                    await use()
            assert (await mq.stats("q")).total == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("sql", ["COMMIT", "commit;", " end ", "ROLLBACK", "BEGIN IMMEDIATE"])
def test_only_the_block_ends_the_transaction(mq: mqlite.Embedded, sql: str) -> None:
    with pytest.raises(mqlite.InvalidArgument, match="its block"):
        end_by_sql(mq, sql)
    assert mq.stats("q").total == 0

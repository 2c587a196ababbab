"""Joins beside everything else that the owner does."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

import mqlite
from mqlite.stores import effects
from patience import eventually, start

from .helpers import bodies, noticed, waiting_receiver
from .modes import Caller


def test_a_fan_out_to_a_topic(mq: mqlite.Embedded, caller: Caller, counted: Counter[str]) -> None:
    for name in ("one", "two", "three"):
        mq.subscribe("events", name)
    receivers = [waiting_receiver(mq, name) for name in ("one", "two", "three")]
    with caller.transaction():
        mq.join(caller.handle).send("events", bytes(2000))
    for receiver in receivers:
        [message] = receiver.result()
        assert message.body == bytes(2000)
        message.complete()
    assert counted["enqueued"] == 3
    with mq.transaction() as tx:
        assert tx.execute("SELECT count(*) FROM mqlite_payloads").fetchone() == (0,)


def test_long_bodies_and_big_batches(mq: mqlite.Embedded, caller: Caller) -> None:
    receiver = waiting_receiver(mq)
    with caller.transaction():
        joined = mq.join(caller.handle)
        joined.send_batch("q", [bytes([n % 256]) * (n * 40) for n in range(100)])
        joined.send_batch("q", [b"x"] * 5000)
    [first] = receiver.result()
    first.complete()
    assert mq.stats("q").total == 5099
    assert [len(body) for body in bodies(mq)[:99]] == [n * 40 for n in range(1, 100)]


def test_lines_and_priorities(mq: mqlite.Embedded, caller: Caller) -> None:
    mq.create_queue("lines", ordering_mode="group_fifo", lock_duration="10m")
    mq.send("lines", b"a1", group_id="a")
    [held] = mq.receive("lines")
    with caller.transaction():
        joined = mq.join(caller.handle)
        joined.send("lines", b"a2", group_id="a", priority=9)
        joined.send("lines", b"b1", group_id="b")
        joined.send("lines", b"c1", group_id="c", priority=5)
        joined.complete("lines", held.seq_number, held.lock_token)
        joined.send("lines", b"a3", group_id="a")
    order = []
    for _ in range(4):
        [message] = mq.receive("lines", mode="receive_and_delete")
        order.append(message.body)
    assert order == [b"a2", b"c1", b"b1", b"a3"]


def test_a_due_message_of_a_join_becomes_active_by_itself(
    mq: mqlite.Embedded, caller: Caller
) -> None:
    receiver = waiting_receiver(mq)
    with caller.transaction():
        mq.join(caller.handle).send("q", b"due", at=2)
    [message] = receiver.result()
    assert message.body == b"due"


def test_a_queue_that_is_deleted_meanwhile_is_not_found(mq: mqlite.Embedded, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        joined = mq.join(connection)
        joined.send("q", b"x")
        connection.rollback()
        mq.delete_queue("q")
        with pytest.raises(mqlite.NotFound):
            joined.send("q", b"never")
        connection.rollback()
        mq.create_queue("q")
        joined.send("q", b"to the new one")
        connection.commit()
    assert bodies(mq) == [b"to the new one"]


def test_joins_among_group_commits(path: Path) -> None:
    async def scenario() -> None:
        async with await mqlite.open_async(path) as mq:
            await mq.create_queue("q")
            done = False

            async def keep_sending() -> int:
                sent = 0
                while not done:
                    await mq.send("q", b"async")
                    sent += 1
                return sent

            def join() -> None:
                with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                    for number in range(40):
                        connection.execute("BEGIN IMMEDIATE")
                        mq.join(connection).send("q", b"joined")
                        connection.execute("ROLLBACK" if number % 2 else "COMMIT")

            senders = [asyncio.ensure_future(keep_sending()) for _ in range(32)]
            await asyncio.gather(*(asyncio.to_thread(join) for _ in range(2)))
            done = True
            sent = sum(await asyncio.gather(*senders))
            assert (await mq.stats("q")).total == sent + 40

    asyncio.run(scenario())


def test_a_closed_queue_joins_nothing(mq: mqlite.Embedded, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        joined = mq.join(connection)
        mq.close()
        for refused in (lambda: mq.join(connection), lambda: joined.send("q", b"never")):
            with pytest.raises(mqlite.Closed):
                refused()
        assert not connection.in_transaction
        with connection:
            mqlite.outbox(connection).send("q", b"the file takes it")
    with mqlite.open(path) as again:
        assert bodies(again) == [b"the file takes it"]


def test_a_join_inside_the_queues_own_transaction_is_refused(
    mq: mqlite.Embedded, path: Path
) -> None:
    with closing(sqlite3.connect(path)) as connection:
        joined = mq.join(connection)
        with mq.transaction() as tx:
            for refused in (lambda: mq.join(connection), lambda: joined.send("q", b"never")):
                with pytest.raises(mqlite.InTransaction):
                    refused()
            tx.send("q", b"x")
        assert not connection.in_transaction
    assert bodies(mq) == [b"x"]


def test_closing_does_not_wait_for_a_callers_transaction(mq: mqlite.Embedded, path: Path) -> None:
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        mq.join(connection).send("q", b"late")
        closing_it = start(mq.close)
        eventually(lambda: mq.core.closing)
        closing_it.result()
        connection.commit()
    with mqlite.open(path) as again:
        assert bodies(again) == [b"late"]


def test_an_error_that_ends_the_callers_transaction_is_not_hidden(
    mq: mqlite.Embedded, path: Path, counted: Counter[str]
) -> None:
    with closing(sqlite3.connect(path)) as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 5}")
        connection.execute("INSERT INTO orders VALUES (1)")
        with pytest.raises(mqlite.Unavailable) as refused:
            mq.join(connection).send("q", bytes(500_000))
        assert refused.value.reason == "disk_full"
        connection.rollback()
        with connection:
            mq.join(connection).send("q", b"small")
    noticed(mq)
    assert bodies(mq) == [b"small"]
    assert counted["enqueued"] == 1


def test_an_operation_that_fails_after_it_wrote_undoes_only_itself(
    mq: mqlite.Embedded, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(told: object) -> str:
        raise RuntimeError("at the last moment")

    with caller.transaction():
        caller.order(1)
        joined = mq.join(caller.handle)
        joined.send("q", b"before")
        with monkeypatch.context() as patched:
            patched.setattr(effects, "encode", fail)
            with pytest.raises(RuntimeError, match="last moment"):
                joined.send_batch("q", [b"never", bytes(2000)])
        joined.send("q", b"after")
        caller.order(2)
    assert bodies(mq) == [b"before", b"after"]
    with mq.transaction() as tx:
        assert tx.execute("SELECT count(*) FROM orders").fetchone() == (2,)

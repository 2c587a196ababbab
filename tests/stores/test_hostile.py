"""What an adversary found: each of these once stopped the queue, or lied about it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import mqlite
from mqlite.engine import janitor
from mqlite.model import MAX_SEND
from patience import eventually

SECOND = 1000
SLOW = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<300000) SELECT count(*) FROM c"


def test_a_transaction_cancelled_twice_still_gives_the_writer_back(path: Path) -> None:
    async def run() -> int:
        async with await mqlite.open_async(path) as mq:
            await mq.create_queue("q")

            async def slow() -> None:
                async with mq.transaction() as tx:
                    await tx.send("q", "lost")
                    await tx.execute(SLOW)

            for _ in range(5):
                task = asyncio.create_task(slow())
                await asyncio.sleep(0.01)
                task.cancel()
                await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await mq.send("q", "kept")
            return (await mq.stats("q")).total

    assert asyncio.run(run()) == 1


def test_a_cursor_that_was_not_read_does_not_outlive_its_transaction(path: Path) -> None:
    with mqlite.open(path) as mq, closing(sqlite3.connect(path)) as foreign:
        mq.create_queue("q")
        with mq.transaction() as tx:
            tx.execute("CREATE TABLE app (x)")
            tx.executemany("INSERT INTO app VALUES (?)", [(n,) for n in range(1000)])
            kept = tx.execute("SELECT x FROM app")
            assert kept.fetchone() == (0,)
        mqlite.outbox(foreign).send("q", "foreign")
        foreign.commit()
        assert mq.send("q", "own")
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            kept.fetchone()


def test_a_clock_that_is_set_back_does_not_prolong_a_long_poll() -> None:
    clock = mqlite.ManualClock()
    answers: list[Any] = []
    with mqlite.open(":memory:", clock=clock) as mq:
        mq.create_queue("q")
        poll = Thread(target=lambda: answers.append(mq.receive("q", wait=2)))
        poll.start()
        eventually(lambda: clock.waiting == 1)
        clock.advance(-3600 * SECOND)
        clock.advance(2 * SECOND)
        poll.join(5)
        assert answers == [[]]


def test_a_send_cancelled_before_it_started_is_not_sent(path: Path) -> None:
    # A task made inside the transaction would belong to it, and be refused.
    async def run() -> list[bytes]:
        async with await mqlite.open_async(path) as mq:
            await mq.create_queue("q")
            await mq.send("q", "first")
            go = asyncio.Event()

            async def later(body: str) -> int:
                await go.wait()
                return await mq.send("q", body)

            sends = [asyncio.create_task(later(body)) for body in ("dropped", "kept")]
            async with mq.transaction():
                go.set()
                await asyncio.sleep(0.01)
                sends[0].cancel()
                await asyncio.sleep(0)
            await asyncio.gather(*sends, return_exceptions=True)
            return [message.body for message in await mq.peek("q")]

    assert asyncio.run(run()) == [b"first", b"kept"]


def test_classes_that_cannot_be_hashed_do_not_break_a_contended_write(path: Path) -> None:
    class Meta(type):
        def __eq__(cls, other: object) -> bool:
            return NotImplemented

        __hash__ = None  # type: ignore[assignment]

    class Odd(metaclass=Meta):
        def __init__(self) -> None:
            self.items: list[int] = []

    odd = Odd()
    with mqlite.open(path) as mq, closing(sqlite3.connect(path, isolation_level=None)) as raw:
        mq.create_queue("q")
        raw.execute("BEGIN IMMEDIATE")
        with pytest.raises(mqlite.InTransaction):
            mq.send("q", "x")
        raw.execute("ROLLBACK")
        assert mq.send("q", "x") == 1
    assert odd.items == []


def test_unknown_options_are_refused_by_name() -> None:
    with pytest.raises(mqlite.InvalidArgument, match="synchronus"):
        mqlite.open(":memory:", synchronus="FULL")  # type: ignore[call-arg]


def test_a_path_that_only_contains_the_word_for_memory_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a:memory:b.db"
    mqlite.open(str(path)).close()
    assert path.exists()


@pytest.mark.parametrize("name", ["file:///x%00y", "x" * 5000])
def test_a_path_the_system_refuses_is_an_invalid_argument(name: str) -> None:
    with pytest.raises(mqlite.InvalidArgument):
        mqlite.open(name)


def test_more_messages_than_a_send_may_hold_are_refused_whole() -> None:
    with mqlite.open(":memory:") as mq:
        mq.create_queue("q")
        with pytest.raises(mqlite.MessageTooLarge, match=str(MAX_SEND)):
            mq.send_batch("q", [b""] * (MAX_SEND + 1))
        assert mq.stats("q").total == 0


def test_a_deleted_queue_is_cleared_in_chunks(path: Path) -> None:
    clock = mqlite.ManualClock()
    with mqlite.open(path, clock=clock) as mq:
        mq.create_queue("q", retain_completed="1h")
        mq.send_batch("q", [b"x"] * 50)
        mq.complete_batch("q", mq.receive("q", max_messages=50))
        mq.delete_queue("q")
        before = mq.core.store._committer.commits
        mq.maintain()
        assert mq.core.store._committer.commits - before < 50
        assert mq.core.run(janitor.clear_deleted_queue()) == 0

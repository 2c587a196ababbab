"""What the caller set on its connection neither disturbs us nor is disturbed by us."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import mqlite
from patience import start

from .helpers import bodies

LEASE: list[Any] = []
"""Of the one message in the queue `held`."""


class Unreadable(sqlite3.Row):
    """Rows that no code of ours could use."""

    def __getitem__(self, key: Any) -> Any:
        raise AssertionError("our rows went through the caller's factory")


class Own(sqlite3.Connection):
    def cursor(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("our cursor came from the caller's factory")


def exercise(mq: mqlite.Embedded, connection: sqlite3.Connection) -> None:
    """Everything that reads text back: names, settings, dedup, groups, batches."""
    joined = mq.join(connection)
    for join in (joined, mqlite.outbox(connection)):
        join.send("named", "ä body", message_id="m", group_id="g", properties={"k": "ü"})
        with pytest.raises(mqlite.DedupConflict):
            join.send("named", "another", message_id="m", group_id="g")
        with pytest.raises(mqlite.NotFound, match="nirgendwö"):
            join.send("nirgendwö", b"")
    joined.reject("held", *LEASE, reason="ö")


@pytest.fixture
def queues(mq: mqlite.Embedded) -> mqlite.Embedded:
    mq.create_queue("named", ordering_mode="group_fifo", dedup_window="1h")
    mq.create_queue("held")
    mq.send("held", b"x")
    [held] = mq.receive("held")
    LEASE[:] = held.seq_number, held.lock_token
    return mq


@pytest.mark.parametrize(
    "factory",
    [bytes, bytearray, lambda raw: raw.decode().upper(), lambda raw: None],
    ids=["bytes", "bytearray", "upper", "none"],
)
def test_text_factory(queues: mqlite.Embedded, path: Path, factory: Callable[..., Any]) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = factory
        with connection:
            connection.execute("INSERT INTO orders VALUES (1)")
            exercise(queues, connection)
            assert connection.text_factory is factory
            assert connection.execute("SELECT 'a'").fetchone() == (factory(b"a"),)
    [message] = queues.peek("named")
    assert (message.body.decode(), message.properties) == ("ä body", {"k": "ü"})
    assert queues.stats("held").dead_lettered == 1


def test_text_factory_is_restored_after_a_failure(queues: mqlite.Embedded, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = bytes
        with pytest.raises(mqlite.NotFound):
            queues.join(connection).send("nowhere", b"")
        assert connection.text_factory is bytes
        connection.rollback()


@pytest.mark.parametrize(
    "factory",
    [Unreadable, lambda cursor, row: {}, lambda cursor, row: 1 / 0],
    ids=["Row", "dict", "0"],
)
def test_row_factory(queues: mqlite.Embedded, path: Path, factory: Any) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = factory
        mqlite.configure(connection)
        with connection:
            exercise(queues, connection)
        assert connection.row_factory is factory
    assert len(queues.peek("named")) == 1


def test_connection_factory(queues: mqlite.Embedded, path: Path) -> None:
    with closing(sqlite3.connect(path, factory=Own)) as connection:
        mqlite.configure(connection)
        with connection:
            exercise(queues, connection)
    assert len(queues.peek("named")) == 1


def test_converters(queues: mqlite.Embedded, path: Path) -> None:
    detect = sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES
    sqlite3.register_converter("MQLITE_TEST_DATE", lambda raw: date.fromisoformat(raw.decode()))
    with closing(sqlite3.connect(path, detect_types=detect)) as connection:
        connection.execute("CREATE TABLE days (day MQLITE_TEST_DATE)")
        with connection:
            connection.execute("INSERT INTO days VALUES ('2026-03-13')")
            exercise(queues, connection)
            assert connection.execute("SELECT day FROM days").fetchone() == (date(2026, 3, 13),)
    assert len(queues.peek("named")) == 1


def test_foreign_keys_and_triggers_of_the_caller(queues: mqlite.Embedded, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA recursive_triggers = ON")
        with connection:
            exercise(queues, connection)
    assert len(queues.peek("named")) == 1


def test_a_statement_that_is_being_read_goes_on(mq: mqlite.Embedded, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany("INSERT INTO orders VALUES (?)", [(n,) for n in range(10)])
        rows = connection.execute("SELECT id FROM orders")
        for (number,) in rows:
            mq.join(connection).send("q", str(number))
    assert bodies(mq) == [str(n).encode() for n in range(10)]


def test_threads_that_share_a_connection_take_turns(mq: mqlite.Embedded, path: Path) -> None:
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        connection.text_factory = bytes
        connection.execute("BEGIN IMMEDIATE")
        shared = mq.join(connection)
        together = threading.Barrier(4)

        def send(thread: int) -> None:
            together.wait()
            for number in range(50):
                joined = shared if number % 2 else mq.join(connection)
                with pytest.raises(mqlite.NotFound):
                    joined.send("nowhere", b"")
                joined.send("q", f"{thread} {number}")

        senders = [start(send, thread) for thread in range(4)]
        for sender in senders:
            sender.result()
        assert connection.text_factory is bytes
        connection.commit()
    assert sorted(bodies(mq)) == sorted(f"{t} {n}".encode() for t in range(4) for n in range(50))


def test_a_connection_bound_to_another_thread_says_so(mq: mqlite.Embedded, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        joined = mq.join(connection)
        with pytest.raises(sqlite3.ProgrammingError, match="thread"):
            start(joined.send, "q", b"never").result()
        assert not connection.in_transaction
    assert bodies(mq) == []

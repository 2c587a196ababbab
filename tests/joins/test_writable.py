"""A transaction that has read and then lost against another writer says how to avoid it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path

import pytest

import mqlite
from patience import eventually, start

from .helpers import bodies
from .modes import (
    NO_AUTOCOMMIT,
    Caller,
    alchemy_caller,
    django_caller,
    sqlite3_caller,
)

Connect = Callable[[Path, ExitStack], Caller]

needs_autocommit = pytest.mark.skipif(bool(NO_AUTOCOMMIT), reason=NO_AUTOCOMMIT)
READERS = [
    pytest.param(
        partial(sqlite3_caller, begin="BEGIN", isolation_level=None),
        "BEGIN IMMEDIATE",
        id="sqlite3",
    ),
    pytest.param(
        partial(sqlite3_caller, autocommit=False),
        "autocommit",
        id="autocommit-false",
        marks=needs_autocommit,
    ),
    pytest.param(django_caller, "transaction_mode", id="django"),
]


@pytest.mark.parametrize(("connect", "fix"), READERS)
def test_the_fix_is_named(
    mq: mqlite.Embedded, path: Path, resources: ExitStack, connect: Connect, fix: str
) -> None:
    caller = connect(path, resources)
    with caller.transaction():
        assert caller.execute("SELECT count(*) FROM orders") == [(0,)]
        mq.send("q", b"in between")
        for join in (mq.join, mqlite.outbox):
            with pytest.raises(mqlite.TransactionNotWritable, match=fix):
                join(caller.handle).send("q", b"never")
        # It still reads what it read before.
        assert caller.execute("SELECT count(*) FROM orders") == [(0,)]
    assert bodies(mq) == [b"in between"]


def test_the_fix_is_named_for_sqlalchemy(
    mq: mqlite.Embedded, path: Path, resources: ExitStack
) -> None:
    caller = alchemy_caller(path, resources)
    with caller.transaction():
        caller.execute("SAVEPOINT reading")
        caller.execute("SELECT count(*) FROM orders")
        mq.send("q", b"in between")
        with pytest.raises(mqlite.TransactionNotWritable, match=r"configure\(engine\)"):
            mq.join(caller.handle).send("q", b"never")
    assert bodies(mq) == [b"in between"]


def test_configured_it_cannot_happen(mq: mqlite.Embedded, path: Path, resources: ExitStack) -> None:
    for caller in (
        alchemy_caller(path, resources, configured=True),
        django_caller(path, resources, configured=True),
    ):
        with caller.transaction():
            caller.execute("SELECT count(*) FROM orders")
            sending = start(mq.send, "q", b"other")
            mq.join(caller.handle).send("q", b"mine")
        sending.result()
    assert sorted(bodies(mq)) == [b"mine", b"mine", b"other", b"other"]


@pytest.mark.parametrize("outbox", [False, True])
def test_a_reader_waits_for_a_lock_that_comes_free_unused(
    mq: mqlite.Embedded, path: Path, resources: ExitStack, outbox: bool
) -> None:
    """SQLite itself refuses at once. The queue's own checkpoints hold the lock like this."""
    caller = sqlite3_caller(
        path, resources, begin="BEGIN", isolation_level=None, check_same_thread=False
    )
    with closing(sqlite3.connect(path, isolation_level=None)) as other, caller.transaction():
        caller.execute("SELECT count(*) FROM orders")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            caller.order(1)
        statements: list[str] = []
        caller.handle.set_trace_callback(statements.append)
        join = mqlite.outbox if outbox else mq.join
        sending = start(lambda: join(caller.handle).send("q", b"patient"))
        eventually(lambda: statements.count("PRAGMA busy_timeout") > 2)
        other.execute("ROLLBACK")
        sending.result()
    assert bodies(mq) == [b"patient"]


def test_a_lock_that_never_comes_free_is_unavailable(
    mq: mqlite.Embedded, path: Path, resources: ExitStack
) -> None:
    reader = sqlite3_caller(path, resources, begin="BEGIN", isolation_level=None, timeout=0.05)
    fresh = sqlite3_caller(path, resources, timeout=0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        with reader.transaction():
            reader.execute("SELECT count(*) FROM orders")
            other.execute("BEGIN IMMEDIATE")
            for caller in (reader, fresh):
                with pytest.raises(mqlite.Unavailable) as refused:
                    mqlite.outbox(caller.handle).send("q", b"never")
                assert refused.value.reason == "database_locked"
            other.execute("ROLLBACK")
        with fresh.transaction():
            mqlite.outbox(fresh.handle).send("q", b"now")
    assert bodies(mq) == [b"now"]


def test_a_file_that_cannot_be_written_is_unavailable(mq: mqlite.Embedded, path: Path) -> None:
    with (
        closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection,
        pytest.raises(mqlite.Unavailable) as refused,
    ):
        mqlite.outbox(connection).send("q", b"never")
    assert refused.value.reason == "read_only"


@pytest.mark.parametrize("how", ["join", "outbox"])
def test_our_own_reads_make_no_transaction_unwritable(
    mq: mqlite.Embedded, path: Path, resources: ExitStack, how: str
) -> None:
    """The caller begins deferred and has read nothing; another connection writes at the
    moment of every statement of ours that follows."""
    caller = sqlite3_caller(path, resources, begin="BEGIN", isolation_level=None)
    other = resources.enter_context(closing(sqlite3.connect(path, timeout=0)))

    def write(statement: str) -> None:
        with suppress(sqlite3.OperationalError), other:
            other.execute("INSERT INTO orders VALUES (1)")

    with caller.transaction():
        caller.handle.set_trace_callback(write)
        join = mq.join if how == "join" else mqlite.outbox
        join(caller.handle).send("q", b"sent")
        caller.handle.set_trace_callback(None)
    assert bodies(mq) == [b"sent"]

"""A call that waits for a lock its own thread holds is told so, and nobody else is."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

import mqlite
from mqlite.stores import callers
from patience import eventually, start

from .helpers import bodies
from .modes import MODES, Caller, alchemy_caller, django_caller

HELD = "still open"

Call = Callable[[mqlite.Embedded], Any]


def in_transaction(mq: mqlite.Embedded) -> None:
    with mq.transaction() as tx:
        tx.send("q", b"never")


CALLS: dict[str, Call] = {
    "send": lambda mq: mq.send("q", b"never"),
    "receive": lambda mq: mq.receive("q"),
    "create": lambda mq: mq.create_queue("never"),
    "transaction": in_transaction,
}


@pytest.fixture
def raw(path: Path, mq: mqlite.Embedded, resources: ExitStack) -> sqlite3.Connection:
    return resources.enter_context(closing(sqlite3.connect(path, isolation_level=None)))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_thread_that_writes_by_itself(
    mq: mqlite.Embedded, raw: sqlite3.Connection, call: Call
) -> None:
    raw.execute("BEGIN IMMEDIATE")
    with pytest.raises(mqlite.InTransaction, match=HELD):
        call(mq)
    raw.execute("COMMIT")
    mq.send("q", b"free")
    assert bodies(mq) == [b"free"]


@pytest.mark.parametrize("name", [mode.name for mode in MODES if not mode.missing])
def test_in_every_mode_after_a_join(
    mq: mqlite.Embedded, path: Path, resources: ExitStack, name: str
) -> None:
    [mode] = [mode for mode in MODES if mode.name == name]
    caller = mode.connect(path, resources)
    with caller.transaction():
        mq.join(caller.handle).send("q", b"joined")
        with pytest.raises(mqlite.InTransaction, match=HELD):
            mq.send("q", b"never")
        caller.order(1)
    assert bodies(mq) == [b"joined"]


@pytest.mark.parametrize("connect", [alchemy_caller, django_caller])
def test_a_configured_connection_needs_no_join(
    mq: mqlite.Embedded, path: Path, resources: ExitStack, connect: Any
) -> None:
    caller: Caller = connect(path, resources, configured=True)
    with caller.transaction():
        caller.order(1)
        with pytest.raises(mqlite.InTransaction, match=HELD):
            mq.send("q", b"never")


def test_one_that_must_line_up(mq: mqlite.Embedded, raw: sqlite3.Connection) -> None:
    def patient() -> int:
        while True:
            with suppress(mqlite.Unavailable):
                return mq.send("q", b"patient")

    raw.execute("BEGIN IMMEDIATE")
    first = start(patient)
    eventually(lambda: mq.core.store._writer._turn.locked())
    for call in CALLS.values():
        with pytest.raises(mqlite.InTransaction, match=HELD):
            call(mq)
    raw.execute("COMMIT")
    first.result()
    assert bodies(mq) == [b"patient"]


AsyncCall = Callable[[mqlite.AsyncEmbedded], Awaitable[Any]]


async def in_async_transaction(mq: mqlite.AsyncEmbedded) -> None:
    async with mq.transaction() as tx:
        await tx.send("q", b"never")


ASYNC_CALLS: dict[str, AsyncCall] = {
    "send": lambda mq: mq.send("q", b"never"),
    "receive": lambda mq: mq.receive("q", wait="20s"),
    "transaction": in_async_transaction,
}


@pytest.mark.parametrize("call", ASYNC_CALLS.values(), ids=ASYNC_CALLS)
def test_a_task_of_a_loop_whose_thread_writes(path: Path, call: AsyncCall) -> None:
    async def scenario() -> None:
        async with await mqlite.open_async(path) as mq:
            await mq.create_queue("q")
            with closing(sqlite3.connect(path, isolation_level=None)) as raw:
                raw.execute("BEGIN IMMEDIATE")
                with pytest.raises(mqlite.InTransaction, match=HELD):
                    await call(mq)
                calls = (call(mq) for _ in range(3))
                for outcome in await asyncio.gather(*calls, return_exceptions=True):
                    assert isinstance(outcome, mqlite.InTransaction)
                raw.execute("COMMIT")
            await mq.send("q", b"free")
            [message] = await mq.receive("q", max_messages=9)
            assert message.body == b"free"

    asyncio.run(scenario())


def patient(mq: mqlite.Embedded, holder: sqlite3.Connection) -> None:
    """A send of the calling thread, which `holder` holds up eventually it has doubted, succeeds."""
    store = mq.core.store
    ask = store._waits_for_itself
    answers: list[bool] = []
    release = start(lambda: (eventually(lambda: answers), holder.execute("ROLLBACK")))

    def asked() -> bool:
        answers.append(ask())
        release.result()
        return answers[-1]

    store._committer._waits_for_itself = store._writer._waits_for_itself = asked
    try:
        mq.send("q", b"patient")
    finally:
        store._committer._waits_for_itself = store._writer._waits_for_itself = ask
    assert not any(answers)
    assert bodies(mq)[-1] == b"patient"


def test_another_threads_lock_is_waited_for(mq: mqlite.Embedded, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        start(mqlite.configure, other).result()
        other.execute("BEGIN IMMEDIATE")
        patient(mq, other)


def test_a_transaction_that_only_reads_holds_nobody_up(
    mq: mqlite.Embedded, raw: sqlite3.Connection, path: Path
) -> None:
    raw.execute("BEGIN")
    raw.execute("SELECT * FROM orders").fetchall()
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        patient(mq, other)
    raw.execute("COMMIT")


def test_a_lock_on_another_file_is_none_of_ours(
    mq: mqlite.Embedded, path: Path, tmp_path: Path
) -> None:
    with (
        closing(sqlite3.connect(tmp_path / "other.db", isolation_level=None)) as elsewhere,
        closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other,
    ):
        elsewhere.execute("BEGIN IMMEDIATE")
        other.execute("BEGIN IMMEDIATE")
        patient(mq, other)


def test_closed_and_unmade_connections_do_not_disturb(
    mq: mqlite.Embedded, raw: sqlite3.Connection, path: Path
) -> None:
    class Unmade(sqlite3.Connection):
        def __init__(self) -> None:
            pass

    class Deeper(Unmade):
        pass

    closed = sqlite3.connect(path)
    closed.close()
    unmade = Deeper()
    raw.execute("BEGIN IMMEDIATE")
    assert callers.in_own_transaction(path)
    raw.execute("ROLLBACK")
    assert not callers.in_own_transaction(path)
    del closed, unmade


def test_what_was_known_of_a_connection_goes_with_it(path: Path, mq: mqlite.Embedded) -> None:
    gc.collect()
    before = len(callers._known)
    for _ in range(3):
        with closing(sqlite3.connect(path)) as connection:
            mqlite.configure(connection)
            assert len(callers._known) == before + 1
            assert callers.any_prepared()
        assert len(callers._known) == before


def test_looking_changes_nothing(mq: mqlite.Embedded, raw: sqlite3.Connection, path: Path) -> None:
    raw.execute("BEGIN")
    raw.execute("INSERT INTO orders VALUES (1)")
    rows = raw.execute("SELECT id FROM orders UNION ALL SELECT 2")
    assert rows.fetchone() == (1,)
    assert callers.in_own_transaction(path)
    assert rows.fetchone() == (2,)
    raw.execute("COMMIT")
    assert raw.execute("SELECT id FROM orders").fetchall() == [(1,)]

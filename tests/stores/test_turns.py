"""Turns at the writer: who is cancelled, interrupted or late, and what is refused."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from typing import Any

import pytest

from mqlite.engine.steps import (
    NOW,
    Insert,
    Operation,
    Steps,
)
from mqlite.errors import Unavailable
from mqlite.stores.sqlite import SqliteStore
from patience import PATIENCE_S, eventually

from .toys import INTO_PAYLOADS, PAYLOAD, Gate, bodies, foreign, held, put, running


def test_a_cancelled_task_that_waits_writes_nothing(any_store: SqliteStore) -> None:
    async def scenario() -> None:
        with held(any_store) as gate:
            call = asyncio.ensure_future(any_store.run_async(put(b"never")))
            await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            gate.opened.set()

    asyncio.run(scenario())
    any_store.run(put(b"next"))
    assert any_store.run(bodies()) == [b"next"]


def test_a_result_nobody_waits_for_is_given_back(any_store: SqliteStore) -> None:
    back: list[Any] = []
    started, go_on = threading.Event(), threading.Event()

    def claim() -> Steps[str]:
        yield Insert(INTO_PAYLOADS, PAYLOAD, [(b"claimed",)])
        started.set()
        assert go_on.wait(PATIENCE_S)
        return "lease"

    async def scenario() -> None:
        call = asyncio.ensure_future(
            any_store.run_async(Operation("claim", claim), abandoned=back.append)
        )
        await asyncio.to_thread(started.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        go_on.set()
        await any_store.run_async(put(b"after"))

    asyncio.run(scenario())
    assert back == ["lease"]


def test_a_result_for_a_closed_loop_is_given_back(any_store: SqliteStore) -> None:
    back: list[Any] = []
    started, go_on = threading.Event(), threading.Event()

    def claim() -> Steps[str]:
        yield NOW
        started.set()
        assert go_on.wait(PATIENCE_S)
        return "lease"

    async def leave() -> None:
        task = asyncio.ensure_future(
            any_store.run_async(Operation("claim", claim), abandoned=back.append)
        )
        await asyncio.to_thread(started.wait)
        task.cancel()

    asyncio.run(leave())
    go_on.set()
    eventually(lambda: bool(back))
    assert back == ["lease"]


@pytest.mark.skipif(sys.platform == "win32", reason="a waiting thread is not interrupted there")
@pytest.mark.parametrize("started", [False, True])
def test_an_interrupted_thread_leaves_the_line_or_gives_back(
    any_store: SqliteStore, started: bool
) -> None:
    back: list[Any] = []
    claiming, go_on = threading.Event(), threading.Event()

    def claim() -> Steps[str]:
        yield NOW
        claiming.set()
        assert go_on.wait(PATIENCE_S)
        return "lease"

    def interrupt(gate: Gate) -> None:
        eventually(lambda: len(any_store._writer._line) == 1)
        if started:
            gate.opened.set()
            assert claiming.wait(PATIENCE_S)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        go_on.set()

    with (
        held(any_store) as gate,
        running(lambda: interrupt(gate)),
        pytest.raises(KeyboardInterrupt),
    ):
        any_store.run(Operation("claim", claim), abandoned=back.append)
    assert back == (["lease"] if started else [])
    any_store.run(put(b"the writer is free"))


def test_a_deadline_ends_the_wait_and_nothing_is_written(any_store: SqliteStore) -> None:
    async def scenario() -> None:
        with pytest.raises(Unavailable) as late:
            await any_store.run_async(put(b"never"), timeout=0.08)
        assert late.value.reason == "overloaded"

    with held(any_store):
        with pytest.raises(Unavailable) as late:
            any_store.run(put(b"never"), timeout=0.08)
        asyncio.run(scenario())
    assert late.value.reason == "overloaded"
    any_store.run(put(b"next"))
    assert any_store.run(bodies()) == [b"next"]


def test_a_cancel_storm_leaves_the_store_usable(any_store: SqliteStore) -> None:
    async def storm() -> None:
        for turns in range(200):
            call = asyncio.ensure_future(any_store.run_async(put(b"x")))
            for _ in range(turns % 5):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        await any_store.run_async(put(b"last"))

    asyncio.run(storm())
    assert any_store.run(bodies())[-1] == b"last"


def test_another_connection_that_holds_the_file_is_waited_for(
    store: SqliteStore, path: Any
) -> None:
    other = foreign(path)
    other.execute("BEGIN IMMEDIATE")

    async def scenario() -> None:
        patient = asyncio.ensure_future(store.run_async(put(b"patient"), timeout=PATIENCE_S))
        await asyncio.to_thread(eventually, lambda: store._committer.contended)
        with pytest.raises(Unavailable) as late:
            await store.run_async(put(b"never"), timeout=0.12)
        assert late.value.reason == "database_locked"
        other.execute("COMMIT")
        assert await patient == [1]

    with pytest.raises(Unavailable) as busy:
        store.run(put(b"never"), timeout=0.1)
    assert busy.value.reason == "database_locked"
    asyncio.run(scenario())
    other.close()


def test_a_full_line_refuses_sends_before_settles(path: Any) -> None:
    store = SqliteStore(path, max_pending=4, max_pending_bytes=1000)

    async def scenario() -> None:
        with held(store) as gate:
            calls = [asyncio.ensure_future(store.run_async(put(b"x"))) for _ in range(3)]
            await asyncio.sleep(0)
            with pytest.raises(Unavailable) as full:
                await store.run_async(put(b"no"))
            assert (full.value.reason, full.value.retry_after) == ("overloaded", 1)
            calls.append(asyncio.ensure_future(store.run_async(put(b"settle", settles=True))))
            await asyncio.sleep(0)
            with pytest.raises(Unavailable):
                await store.run_async(put(b"no", settles=True))
            gate.opened.set()
            await asyncio.gather(*calls)
        with held(store) as gate:
            heavy = asyncio.ensure_future(store.run_async(put(b"heavy", size=5000)))
            await asyncio.sleep(0)
            with pytest.raises(Unavailable):
                await store.run_async(put(b"no", size=1, settles=True))
            gate.opened.set()
            await heavy

    asyncio.run(scenario())
    assert store.run(bodies()) == [b"x", b"x", b"x", b"settle", b"heavy"]
    store.close()

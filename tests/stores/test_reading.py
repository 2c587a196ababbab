"""Reads: beside the writer, bounded, and unable to write."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from mqlite.engine.steps import (
    Operation,
    Statement,
    Steps,
)
from mqlite.errors import Unavailable
from mqlite.stores.sqlite import SqliteStore
from patience import PATIENCE_S

from .toys import bodies, held, put


def test_reads_run_beside_a_busy_writer(store: SqliteStore) -> None:
    store.run(put(b"committed"))

    async def read() -> list[bytes]:
        return await store.run_async(bodies())

    with held(store):
        assert store.run(bodies()) == [b"committed"]
        assert asyncio.run(read()) == [b"committed"]


def test_what_reads_cannot_write(store: SqliteStore) -> None:
    operation = put(b"never")
    operation.reads = True
    with pytest.raises(Unavailable) as refused:
        store.run(operation)
    assert refused.value.reason == "read_only"


def test_too_many_reads_are_refused(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    assert store._reader is not None
    monkeypatch.setattr(store._reader, "_room", threading.BoundedSemaphore(1))
    entered, go_on = threading.Event(), threading.Event()

    def slow() -> Steps[str]:
        entered.set()
        assert go_on.wait(PATIENCE_S)
        return "read"
        yield

    async def scenario() -> None:
        reading = asyncio.ensure_future(store.run_async(Operation("slow", slow, reads=True)))
        await asyncio.to_thread(entered.wait)
        for refused in (
            store.run_async(bodies()),
            asyncio.to_thread(store.run, bodies(), timeout=0.01),
        ):
            with pytest.raises(Unavailable) as full:
                await refused
            assert full.value.reason == "overloaded"
        go_on.set()
        assert await reading == "read"
        assert await store.run_async(bodies()) == []

    asyncio.run(scenario())


def test_a_long_read_goes_on_in_a_new_snapshot(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mqlite.stores.sqlite.reader.SNAPSHOT_S", 0.0)

    def pages() -> Steps[list[Any]]:
        first = yield Statement("SELECT count(*) FROM mqlite_payloads")
        store.run(put(b"between"))
        return first + (yield Statement("SELECT count(*) FROM mqlite_payloads"))

    assert store.run(Operation("pages", pages, reads=True)) == [(0,), (1,)]

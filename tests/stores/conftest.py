"""Stores on a file and in memory, with a clock that tests move."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlite.clock import ManualClock
from mqlite.stores.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mq.db"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(path: Path, clock: ManualClock) -> Iterator[SqliteStore]:
    with_clock = SqliteStore(path, clock=clock)
    yield with_clock
    with_clock.close()


@pytest.fixture(params=["file", "memory"])
def any_store(
    request: pytest.FixtureRequest, path: Path, clock: ManualClock
) -> Iterator[SqliteStore]:
    opened = SqliteStore(path if request.param == "file" else ":memory:", clock=clock)
    yield opened
    opened.close()

"""A queue under observation, through every way in where it matters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mqlite
from contract.ways import WAYS, World
from mqlite.clock import ManualClock


@pytest.fixture(params=WAYS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    world = World(request.param, tmp_path / "queue.db")
    yield world
    world.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue.db"


@pytest.fixture
def reopen(path: Path, clock: ManualClock) -> Iterator[Callable[..., mqlite.Embedded]]:
    """Opens the queue on the file, closing it first where it is open."""
    opened: list[mqlite.Embedded] = []

    def open_(**options: Any) -> mqlite.Embedded:
        for mq in opened:
            mq.close()
        opened.append(mqlite.open(path, **({"clock": clock} | options)))
        return opened[-1]

    yield open_
    for mq in opened:
        mq.close()


@pytest.fixture
def mq(reopen: Callable[..., mqlite.Embedded]) -> mqlite.Embedded:
    mq = reopen()
    mq.create_queue("q")
    return mq

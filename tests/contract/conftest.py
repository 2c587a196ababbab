"""Every test runs through every way in, and leaves a sound database behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.ways import WAYS, World
from mqlite.api import MQ
from mqlite.clock import ManualClock


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def make_world(way: str, tmp_path: Path) -> Iterator[Callable[..., World]]:
    """Opens a queue with options of its own."""
    made: list[World] = []

    def make(**options: Any) -> World:
        world = World(way, tmp_path / f"queue{len(made)}.db", **options)
        made.append(world)
        return world

    yield make
    for world in made:
        world.close()
        assert world.problems() == []


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()


@pytest.fixture
def mq(world: World) -> MQ:
    return world.mq


@pytest.fixture
def clock(world: World) -> ManualClock:
    return world.clock


@pytest.fixture
def maintain(world: World) -> Callable[[], None]:
    return world.maintain

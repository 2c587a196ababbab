"""A broker on a real socket, on a queue whose clock the tests move."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mqlite
from broker.support import TOKENS, Api
from mqlite.broker.connection import Connection
from mqlite.broker.serve import serving
from mqlite.clock import ManualClock
from mqlite.embedded import Embedded


@pytest.fixture(scope="session")
def shared_url() -> Iterator[str]:
    """A broker for tests that leave nothing behind which another could trip over."""
    clock = ManualClock()
    with mqlite.open(":memory:", clock=clock) as mq, serving(mq, tokens=TOKENS) as where:
        yield where


@pytest.fixture
def shared_api(shared_url: str) -> Api:
    client = Api(shared_url)
    client.ok("CreateQueue", name="q")
    return client


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def mq(clock: ManualClock) -> Iterator[Embedded]:
    with mqlite.open(":memory:", clock=clock) as queue:
        yield queue


@pytest.fixture
def file_mq(tmp_path: Path, clock: ManualClock) -> Iterator[Embedded]:
    with mqlite.open(tmp_path / "mq.db", clock=clock) as mq:
        yield mq


@pytest.fixture
def url(mq: Embedded) -> Iterator[str]:
    with serving(mq, tokens=TOKENS) as where:
        yield where


@pytest.fixture
def api(url: str) -> Api:
    client = Api(url)
    client.ok("CreateQueue", name="q")
    return client


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    """The broker's ends of the connections of this test, in order."""
    made: list[Connection] = []
    begin = Connection.__init__

    def keep(self: Connection, **arguments: Any) -> None:
        begin(self, **arguments)
        made.append(self)

    monkeypatch.setattr(Connection, "__init__", keep)
    return made

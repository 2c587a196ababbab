"""Every test of the clients runs with both; retries do not make them slow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Protocol

import pytest

import mqlite
from contract.ways import Blocking, EventLoop
from mqlite.api import MQ
from mqlite.client import discipline


class Connect(Protocol):
    """Makes a client, which is closed with the test."""

    def __call__(self, url: str, **options: Any) -> MQ: ...


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def connect(kind: str) -> Iterator[Connect]:
    with ExitStack() as stack:
        if kind == "sync":
            yield lambda url, **options: stack.enter_context(mqlite.connect(url, **options))
            return
        loop = stack.enter_context(EventLoop())

        def connect(url: str, **options: Any) -> Any:
            mq = Blocking(loop.run(mqlite.connect_async(url, **options)), loop)
            stack.callback(mq.close)
            return mq

        yield connect


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discipline, "FIRST_PAUSE", 0.001)

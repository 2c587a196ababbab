"""A real broker and a remembered one, each with an agent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import mqlite
from client import stub as stubs
from client.stub import StubBroker
from mqlite.broker.serve import serving
from mqlite.clock import ManualClock
from mqlite.embedded import Embedded

from .support import TOKEN, Agent, accepting


@pytest.fixture(scope="session")
def one_stub() -> Iterator[StubBroker]:
    with stubs.serving(accepting) as broker:
        yield broker


@pytest.fixture
def stub(one_stub: StubBroker) -> StubBroker:
    """A broker that is content with everything and has not been asked anything."""
    one_stub.requests.clear()
    one_stub.behaviour = accepting
    return one_stub


@pytest.fixture
def stub_agent(stub: StubBroker) -> Agent:
    return Agent(stub.url)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def mq(clock: ManualClock) -> Iterator[Embedded]:
    with mqlite.open(":memory:", clock=clock) as queue:
        yield queue


@pytest.fixture
def url(mq: Embedded) -> Iterator[str]:
    with serving(mq, tokens=[TOKEN]) as where:
        yield where


@pytest.fixture
def agent(url: str) -> Agent:
    return Agent(url)

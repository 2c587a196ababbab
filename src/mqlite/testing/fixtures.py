"""Fixtures for pytest, for a `conftest.py` that says

pytest_plugins = ["mqlite.testing.fixtures"]
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqlite.clock import ManualClock
from mqlite.embedded import AsyncEmbedded, Embedded
from mqlite.testing import open_memory


@pytest.fixture
def mq() -> Iterator[Embedded]:
    """A queue in memory, new for each test; time stands still."""
    with open_memory() as opened:
        yield opened


@pytest.fixture
def async_mq(mq: Embedded) -> AsyncEmbedded:
    """The queue of `mq`, for async callers of whatever event loop."""
    return AsyncEmbedded(mq.core)


@pytest.fixture
def mq_clock(mq: Embedded) -> ManualClock:
    """The clock of `mq`; `mqlite.testing.later` moves it and does what is due then."""
    assert isinstance(mq.clock, ManualClock)
    return mq.clock

"""Every test runs through every way in, and leaves a sound database behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from contract.conftest import make_world, way, world
from receiver.driving import end_all

__all__ = ["make_world", "way", "world"]


@pytest.fixture(autouse=True)
def nothing_stays(request: pytest.FixtureRequest) -> Iterator[None]:
    """Ends the receivers of a test before its queue is closed."""
    if "world" in request.fixturenames:
        request.getfixturevalue("world")
    yield
    end_all()

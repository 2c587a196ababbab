"""An owner of a queue with its background threads, beside the callers' connections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import mqlite
from mqlite.engine import doctor

from .modes import MODES, Caller, Mode


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "app.db"


@pytest.fixture
def mq(path: Path) -> Iterator[mqlite.Embedded]:
    with mqlite.open(path) as mq:
        mq.create_queue("q", lock_duration="10m")
        with mq.transaction() as tx:
            tx.execute("CREATE TABLE orders (id INTEGER)")
        yield mq
        if not mq.core.closing:
            mq.core.store.look()
            assert mq.core.run(doctor.examine()) == []


@pytest.fixture
def counted(mq: mqlite.Embedded) -> Counter[str]:
    """How many events of each kind were told."""
    seen: Counter[str] = Counter()
    mq.core.store.events.append(
        lambda events: [seen.update({event.event: event.number}) for event in events]
    )
    return seen


@pytest.fixture
def resources() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture(params=MODES, ids=lambda mode: mode.name)
def mode(request: pytest.FixtureRequest) -> Mode:
    mode: Mode = request.param
    if mode.missing:
        pytest.skip(mode.missing)
    return mode


@pytest.fixture
def caller(mode: Mode, mq: mqlite.Embedded, path: Path, resources: ExitStack) -> Caller:
    return mode.connect(path, resources)

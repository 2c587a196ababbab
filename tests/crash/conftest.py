from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import mqlite
from mqlite.engine import doctor

ROUNDS = int(os.environ.get("MQLITE_CRASH_ROUNDS", "2"))
"""How often each scenario is killed at random."""


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    seed = int(os.environ.get("MQLITE_CRASH_SEED", "0")) or random.SystemRandom().randrange(
        1, 2**32
    )
    print(f"to repeat these moments: MQLITE_CRASH_SEED={seed}")
    return random.Random(f"{seed} {request.node.name}")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A queue `q` and the caller's own table, closed."""
    path = tmp_path / "queue.db"
    with mqlite.open(str(path)) as mq:
        mq.create_queue("q", lock_duration="1h", max_delivery_count=3)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE orders (id TEXT PRIMARY KEY)")
        connection.commit()
    return path


Reopen = Callable[[Path], "contextmanager[mqlite.Embedded]"]


@contextmanager
def reopened(path: Path) -> Iterator[mqlite.Embedded]:
    """The queue after a crash: it opens at once, the file is whole, the engine finds nothing
    wrong with it, and no lock is left."""
    with mqlite.open(str(path)) as mq:
        assert mq.core.run(doctor.examine()) == []
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        yield mq

from __future__ import annotations

import pytest

from .ballast import Database, build

MANY = 100_000


@pytest.fixture(scope="session")
def crowded() -> Database:
    return build(MANY)


@pytest.fixture(scope="session")
def crowded_and_analyzed(crowded: Database) -> Database:
    database = crowded.copy()
    database.analyze()
    return database


@pytest.fixture(scope="session")
def nearly_empty() -> Database:
    return build(1)


@pytest.fixture(scope="session", params=["without statistics", "analyzed"])
def beside_many(request: pytest.FixtureRequest) -> Database:
    """A database with 100,000 messages of each useless kind, with and without the statistics
    that ANALYZE leaves for the planner."""
    name = "crowded" if request.param == "without statistics" else "crowded_and_analyzed"
    database: Database = request.getfixturevalue(name)
    return database

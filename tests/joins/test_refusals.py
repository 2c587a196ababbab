"""What cannot be joined is refused by name, at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import django.db
import pytest
import sqlalchemy

import mqlite

from .helpers import bodies
from .modes import NO_AUTOCOMMIT, Caller, alchemy_engine, django_alias

WAYS = ("join", "outbox")


@pytest.fixture(params=WAYS)
def join(mq: mqlite.Embedded, request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    return mq.join if request.param == "join" else mqlite.outbox


def stranger(package: str, name: str = "Connection") -> Any:
    """An instance of a class that some other package seems to have made."""
    return type(name, (), {"__module__": f"{package}.inner"})()


@pytest.mark.parametrize("package", ["pysqlite3", "apsw", "sqlcipher3", "libsql"])
def test_another_library_is_named(join: Callable[[Any], Any], package: str) -> None:
    expected = rf"is of type {package}\.inner\.Connection; .*locks"
    with pytest.raises(mqlite.InvalidArgument, match=expected):
        join(stranger(package))


def test_another_library_below_sqlalchemy_is_named(
    join: Callable[[Any], Any], resources: ExitStack
) -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    resources.callback(engine.dispose)
    with engine.connect() as connection:
        connection.connection.dbapi_connection = stranger("pysqlite3.dbapi2")
        try:
            with pytest.raises(mqlite.InvalidArgument, match=r"pysqlite3\.dbapi2"):
                join(connection)
        finally:
            connection.invalidate()


@pytest.mark.parametrize(
    "what",
    [
        None,
        "app.db",
        42,
        stranger("sqlalchemy.ext.asyncio", "AsyncSession"),
        stranger("sqlalchemy.engine", "Engine"),
        stranger("django.db.models", "Model"),
    ],
    ids=lambda what: type(what).__name__,
)
def test_what_is_no_connection_is_named(join: Callable[[Any], Any], what: Any) -> None:
    with pytest.raises(mqlite.InvalidArgument, match=type(what).__name__):
        join(what)


def test_an_engine_is_not_a_connection(
    path: Path, join: Callable[[Any], Any], resources: ExitStack
) -> None:
    with pytest.raises(mqlite.InvalidArgument, match="Engine"):
        join(alchemy_engine(path, resources))


def test_memory_is_refused(join: Callable[[Any], Any], mq: mqlite.Embedded) -> None:
    for database in (":memory:", ""):
        with (
            closing(sqlite3.connect(database)) as connection,
            pytest.raises(mqlite.InvalidArgument, match="memory"),
        ):
            join(connection)
    with (
        mqlite.open(":memory:") as in_memory,
        closing(sqlite3.connect(":memory:")) as connection,
        pytest.raises(mqlite.InvalidArgument, match="in memory"),
    ):
        in_memory.join(connection)


def test_another_file_and_an_attached_one_are_refused(
    mq: mqlite.Embedded, path: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE t (x)")
        with pytest.raises(mqlite.InvalidArgument, match=r"other\.db.*app\.db"):
            mq.join(connection)
        connection.execute(f"ATTACH '{path}' AS queue")
        with pytest.raises(mqlite.InvalidArgument, match="attached"):
            mq.join(connection)
        with pytest.raises(mqlite.SchemaMismatch, match=r"other\.db"):
            mqlite.outbox(connection)
        other.unlink()
        with pytest.raises(mqlite.InvalidArgument, match=r"other\.db"):
            mq.join(connection)


def test_the_same_file_may_be_spelt_differently(
    mq: mqlite.Embedded, path: Path, tmp_path: Path
) -> None:
    (tmp_path / "link.db").symlink_to(path)
    (tmp_path / "deep").mkdir()
    for spelling in ("link.db", "deep/../app.db"):
        with closing(sqlite3.connect(tmp_path / spelling)) as connection, connection:
            mq.join(connection).send("q", spelling)
    assert bodies(mq) == [b"link.db", b"deep/../app.db"]


@pytest.mark.parametrize(
    "options",
    [
        {"isolation_level": None},
        pytest.param(
            {"autocommit": True},
            marks=pytest.mark.skipif(bool(NO_AUTOCOMMIT), reason=NO_AUTOCOMMIT),
        ),
    ],
    ids=str,
)
def test_autocommit_has_nothing_to_join(
    join: Callable[[Any], Any], path: Path, options: dict[str, Any]
) -> None:
    with (
        closing(sqlite3.connect(path, **options)) as connection,
        pytest.raises(mqlite.InvalidArgument, match="BEGIN IMMEDIATE"),
    ):
        join(connection).send("q", b"never")


def test_django_outside_atomic_has_nothing_to_join(
    mq: mqlite.Embedded, join: Callable[[Any], Any], path: Path, resources: ExitStack
) -> None:
    alias = django_alias(path, resources)
    connection = django.db.connections[alias]
    with pytest.raises(mqlite.InvalidArgument, match=r"transaction\.atomic"):
        join(connection).send("q", b"never")
    with django.db.transaction.atomic(alias):
        joined = join(connection)
        joined.send("q", b"inside")
    with pytest.raises(mqlite.InvalidArgument, match=r"transaction\.atomic"):
        joined.send("q", b"never")
    assert bodies(mq) == [b"inside"]


def test_django_without_autocommit_is_in_a_transaction(
    mq: mqlite.Embedded, join: Callable[[Any], Any], path: Path, resources: ExitStack
) -> None:
    connection = django.db.connections[django_alias(path, resources)]
    connection.set_autocommit(False)
    join(connection).send("q", b"never")
    connection.rollback()
    join(connection).send("q", b"committed")
    connection.commit()
    assert bodies(mq) == [b"committed"]


def test_a_memory_queue_has_its_own_transaction(path: Path) -> None:
    with mqlite.open(":memory:") as mq:
        mq.create_queue("q")
        with mq.transaction() as tx:
            tx.send("q", b"x")
        assert bodies(mq) == [b"x"]


def test_an_outbox_only_sends(mq: mqlite.Embedded, caller: Caller) -> None:
    with caller.transaction():
        outbox = mqlite.outbox(caller.handle)
        assert outbox.send_batch("q", [b"a", b"b"])
        for name in (
            "complete",
            "complete_batch",
            "abandon",
            "release",
            "reject",
            "defer",
            "cancel",
        ):
            assert not hasattr(outbox, name)
    assert bodies(mq) == [b"a", b"b"]

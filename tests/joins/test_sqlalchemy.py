"""What is peculiar to SQLAlchemy: the outermost savepoint, pooled connections, AUTOCOMMIT."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import orm

import mqlite

from .helpers import Undo, bodies
from .modes import Alchemy, alchemy_engine


@pytest.fixture(params=[False, True], ids=["default", "configured"])
def engine(path: Path, mq: mqlite.Embedded, resources: ExitStack, request: Any) -> Any:
    return alchemy_engine(path, resources, configured=request.param)


@pytest.fixture(params=["connection", "session"])
def caller(engine: Any, resources: ExitStack, request: Any) -> Alchemy:
    handle = engine.connect() if request.param == "connection" else orm.Session(engine)
    return Alchemy(resources.enter_context(handle))


def orders(engine: Any) -> int:
    with engine.connect() as connection:
        number: int = connection.execute(sqlalchemy.text("SELECT count(*) FROM orders")).scalar()
        return number


def test_an_outermost_savepoint_does_not_commit_before_the_caller(
    mq: mqlite.Embedded, caller: Alchemy, engine: Any
) -> None:
    with suppress(Undo), caller.transaction():
        with caller.nested():
            caller.order(1)
            mq.join(caller.handle).send("q", b"never")
        with caller.nested():
            caller.order(2)
        raise Undo
    assert bodies(mq) == []
    assert orders(engine) == 0


def test_an_outermost_savepoint_rolls_back_alone(
    mq: mqlite.Embedded, caller: Alchemy, engine: Any
) -> None:
    with caller.transaction():
        with suppress(Undo), caller.nested():
            caller.order(1)
            mq.join(caller.handle).send("q", b"never")
            with caller.nested():
                mq.join(caller.handle).send("q", b"never")
            raise Undo
        with caller.nested():
            mq.join(caller.handle).send("q", b"kept")
        caller.order(2)
    assert bodies(mq) == [b"kept"]
    assert orders(engine) == 1


def test_a_join_before_the_savepoint_is_one_too(mq: mqlite.Embedded, caller: Alchemy) -> None:
    with suppress(Undo), caller.transaction():
        joined = mq.join(caller.handle)
        with caller.nested():
            joined.send("q", b"never")
        raise Undo
    assert bodies(mq) == []


def test_a_join_ends_with_its_transaction(mq: mqlite.Embedded, caller: Alchemy) -> None:
    with caller.transaction():
        joined = mq.join(caller.handle)
        outbox = mqlite.outbox(caller.handle)
        joined.send("q", b"inside")
    for ended in (joined, outbox):
        with pytest.raises(mqlite.TransactionClosed):
            ended.send("q", b"never")
    mq.send("q", b"nobody holds the file")
    assert bodies(mq) == [b"inside", b"nobody holds the file"]


def test_a_join_begins_what_a_statement_would_begin(mq: mqlite.Embedded, caller: Alchemy) -> None:
    mq.join(caller.handle).send("q", b"x")
    assert bodies(mq) == []
    caller.handle.commit()
    assert bodies(mq) == [b"x"]


def test_autocommit_is_refused_and_left_alone(mq: mqlite.Embedded, engine: Any) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        with pytest.raises(mqlite.InvalidArgument, match="AUTOCOMMIT"):
            mq.join(connection).send("q", b"never")
        connection.execute(sqlalchemy.text("INSERT INTO orders VALUES (1)"))
    assert orders(engine) == 1
    assert bodies(mq) == []
    with engine.begin() as connection:
        mq.join(connection).send("q", b"the pooled connection is as before")
    assert len(bodies(mq)) == 1


def test_an_engine_can_be_configured_late_and_twice(
    path: Path, mq: mqlite.Embedded, resources: ExitStack
) -> None:
    engine = alchemy_engine(path, resources)
    assert orders(engine) == 0  # its pool holds a connection now
    mqlite.configure(engine)
    mqlite.configure(engine)
    with engine.connect() as connection:
        mqlite.configure(connection)
        assert connection.exec_driver_sql("PRAGMA wal_autocheckpoint").scalar() == 0
        assert connection.connection.dbapi_connection.in_transaction
        mq.join(connection).send("q", b"x")
        connection.commit()
    assert bodies(mq) == [b"x"]


def test_a_longer_timeout_is_kept(path: Path, resources: ExitStack) -> None:
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", connect_args={"timeout": 30})
    resources.callback(engine.dispose)
    mqlite.configure(engine)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 30_000


@pytest.mark.parametrize("url", ["postgresql://", "mysql://"])
def test_an_engine_for_another_database_is_refused(url: str) -> None:
    class Elsewhere:
        name = url.removesuffix("://")

    class Engine:
        __module__ = "sqlalchemy.engine.base"
        dialect = Elsewhere

    Engine.engine = Engine()  # type: ignore[attr-defined]
    with pytest.raises(mqlite.InvalidArgument, match=Elsewhere.name):
        mqlite.configure(Engine())


def test_the_orm_and_the_message_share_one_commit(
    path: Path, mq: mqlite.Embedded, engine: Any
) -> None:
    class Base(orm.DeclarativeBase):
        pass

    class Order(Base):
        __tablename__ = "mapped"
        id: orm.Mapped[int] = orm.mapped_column(primary_key=True)

    Base.metadata.create_all(engine)
    with orm.Session(engine) as session, session.begin():
        session.add(Order(id=42))
        session.flush()
        mq.join(session).send("q", b"42")
    with suppress(Undo), orm.Session(engine) as session, session.begin():
        session.add(Order(id=43))
        mq.join(session).send("q", b"43")
        raise Undo
    assert bodies(mq) == [b"42"]
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT id FROM mapped").fetchall() == [(42,)]
    other.close()

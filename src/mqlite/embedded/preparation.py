"""Preparing a caller's connections to live beside a queue on the same file."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from mqlite.errors import InvalidArgument
from mqlite.stores.callers import recognise, remember

BUSY_TIMEOUT_MS: Final = 5000


def configure(connection: Any) -> None:
    """Prepare connections for joining; once per connection, or once per SQLAlchemy engine.

    Takes a `sqlite3.Connection`, a SQLAlchemy `Engine` (every connection of its pool is
    prepared as it is made) or `Connection`, or Django's connection (in a
    `connection_created` receiver). Writing transactions begin as `BEGIN IMMEDIATE`, so that
    they never fail to become writing ones half way (Django: set `transaction_mode` instead);
    the connection leaves checkpoints of the log to the queue; it waits 5 s for the file.
    """
    kind = type(connection)
    if kind.__module__.partition(".")[0] == "sqlalchemy" and kind.__name__ in (
        "Engine",
        "AsyncEngine",
    ):
        _configure_engine(getattr(connection, "sync_engine", connection))
        return
    caller = recognise(connection)
    _prepare(caller.connection)
    if caller.library == "sqlite3" and caller.connection.isolation_level is not None:
        caller.connection.isolation_level = "IMMEDIATE"


def _configure_engine(engine: Any) -> None:
    from sqlalchemy import event

    if engine.dialect.name != "sqlite":
        raise InvalidArgument(f"the engine is for {engine.dialect.name}, not for SQLite")

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        _prepare(connection)
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        remember(connection.connection.dbapi_connection)
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _prepare(connection: sqlite3.Connection) -> None:
    remember(connection)
    cursor = sqlite3.Cursor(connection)
    cursor.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}").fetchall()

"""Preparing a caller's connections to live beside a queue on the same file."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from mqlite.errors import InvalidArgument
from mqlite.stores.callers import recognise, remember

BUSY_TIMEOUT_MS: Final = 5000


def configure(connection: Any) -> None:
    """Prepare connections for joining; once per connection, or once per SQLAlchemy engine.

    Takes a `sqlite3.Connection`, a SQLAlchemy `Engine` or `Connection` (every connection of
    its engine is prepared, and every transaction of theirs), or Django's connection (in a
    `connection_created` receiver). Transactions begin as `BEGIN IMMEDIATE`, so that they
    never fail to become writing ones half way (Django: set `transaction_mode` instead); the
    connection leaves checkpoints of the log to the queue; it waits at least 5 s for the file.
    """
    if type(connection).__module__.startswith("sqlalchemy.") and hasattr(connection, "dialect"):
        _configure_engine(getattr(connection, "sync_engine", connection).engine)
        return
    caller = recognise(connection)
    _prepare(caller.connection)
    if caller.library == "sqlite3" and caller.connection.isolation_level is not None:
        caller.connection.isolation_level = "IMMEDIATE"


def _configure_engine(engine: Any) -> None:
    from sqlalchemy import event

    if engine.dialect.name != "sqlite":
        raise InvalidArgument(f"the engine is for {engine.dialect.name}, not for SQLite")
    for name, listener in (("connect", _made), ("begin", _begun)):
        if not event.contains(engine, name, listener):
            event.listen(engine, name, listener)


def _made(connection: Any, record: Any) -> None:
    _prepare(connection)
    connection.isolation_level = None


def _begun(connection: Any) -> None:
    if connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT":
        return
    inner = connection.connection.dbapi_connection
    # It may be older than the preparation of its engine.
    if isinstance(inner, sqlite3.Connection) and not remember(inner).prepared:
        _prepare(inner)
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _prepare(connection: Any) -> None:
    if isinstance(connection, sqlite3.Connection):
        remember(connection).prepared = True
        cursor: Any = sqlite3.Cursor(connection)
    else:  # that of an async driver, which can be prepared but not joined
        cursor = connection.cursor()
    cursor.execute("PRAGMA wal_autocheckpoint = 0")
    cursor.execute("PRAGMA busy_timeout")
    if cursor.fetchone()[0] < BUSY_TIMEOUT_MS:
        cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    cursor.close()

"""Looks at a file before anything is written to it, and refuses what is not ours to open."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mqlite.engine.steps import Row
from mqlite.errors import SchemaMismatch
from mqlite.stores.sqlite import ledger
from mqlite.stores.sqlite.failures import refuse
from mqlite.stores.sqlite.location import Location

MIN_SQLITE: Final = (3, 37, 0)

_TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table'"
_GO_TABLES: Final = frozenset({"meta", "queues", "messages", "subscriptions"})
_GO_VERSION: Final = "SELECT value FROM meta WHERE key = 'schema_version'"
_OUR_VERSION: Final = "SELECT value FROM mqlite_meta WHERE key = 'schema_version'"


def check_library() -> None:
    """Raises SchemaMismatch where this Python's SQLite cannot hold the schema."""
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < MIN_SQLITE:
        needed = ".".join(map(str, MIN_SQLITE))
        raise SchemaMismatch(
            f"this Python uses SQLite {version}, the queue needs {needed} or later (STRICT tables)"
        )
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("SELECT json('{}')")
    except sqlite3.OperationalError:
        raise SchemaMismatch(
            f"this Python's SQLite {version} was built without the JSON functions the queue needs"
        ) from None
    finally:
        connection.close()


def check_file(location: Location) -> None:
    """Raises SchemaMismatch for a file that must not be opened, Unavailable where it
    cannot be looked at. Writes nothing."""
    path = location.path
    if path is None or not path.exists() or path.stat().st_size == 0:
        return
    try:
        connection = sqlite3.connect(_reading(location, path), uri=True, isolation_level=None)
        try:
            _check(connection, path)
        finally:
            connection.close()
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            raise SchemaMismatch(
                f"{path} is not an SQLite database, or is encrypted or damaged: give another path,"
                " or restore it from a backup"
            ) from None
        refuse(error, str(path))
        raise


def _reading(location: Location, path: Path) -> str:
    # Reading a file in WAL mode creates the log and its index where they are missing;
    # without a log the file alone is the whole truth.
    for suffix in ("-wal", "-journal"):
        side = path.with_name(path.name + suffix)
        if side.exists() and side.stat().st_size:
            return location.uri(mode="ro")
    return location.uri(mode="ro", immutable=1)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    tables = {name for (name,) in connection.execute(_TABLES)}
    if "mqlite_ledger" in tables:
        _check_ledger(connection, path)
    elif ledger.schema(connection):
        raise SchemaMismatch(
            f"{path} has mqlite_* tables but no mqlite_ledger: it is incomplete. Restore it from a "
            "backup, or give another path"
        )
    elif tables >= _GO_TABLES:
        _check_not_go(connection, path)


def _check_not_go(connection: sqlite3.Connection, path: Path) -> None:
    rows = _rows(connection, _GO_VERSION)
    if rows:
        raise SchemaMismatch(
            f"{path} belongs to the Go program mqlite (its schema is {rows[0][0]!r}): open it with "
            "that program, move its messages over HTTP, and give this one another path"
        )


def _check_ledger(connection: sqlite3.Connection, path: Path) -> None:
    known = ledger.migrations()
    found = _rows(connection, ledger.SELECT_APPLIED)
    expected = [(each.version, each.name, each.checksum) for each in known]
    if len(found) > len(known) or (found and found[-1][0] > known[-1].version):
        raise SchemaMismatch(
            f"{path} was written by a newer version of this package (migration {found[-1][0]}, this "
            f"one knows {known[-1].version}): upgrade the package"
        )
    if found != expected[: len(found)] or not found:
        raise SchemaMismatch(
            f"the migrations recorded in {path} are not those of this package (found "
            f"{[row[:2] for row in found]}): the ledger is altered or incomplete. Restore the file "
            "from a backup"
        )
    _check_version(connection, path)
    _check_schema(ledger.schema(connection), len(found), path)


def _check_schema(present: Mapping[str, str], applied: int, path: Path) -> None:
    expected = ledger.expected_schema(applied)
    for name, sql in expected.items():
        if present.get(name) != sql:
            state = "altered" if name in present else "missing"
            raise SchemaMismatch(
                f"in {path} the table or index {name} is {state}: restore the file from a backup"
            )
    every = ledger.expected_schema(len(ledger.migrations()))
    if early := sorted((every.keys() - expected.keys()) & present.keys()):
        raise SchemaMismatch(
            f"{path} has the table or index {early[0]}, but the last migration recorded in it is"
            f" {applied}: the ledger is incomplete. Restore the file from a backup"
        )


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    rows = _rows(connection, _OUR_VERSION)
    if rows != [(ledger.SCHEMA_VERSION,)]:
        found = repr(rows[0][0]) if rows else "none"
        raise SchemaMismatch(
            f"{path} has schema version {found}, this package reads {ledger.SCHEMA_VERSION!r}: open "
            "it with the version of the package that wrote it"
        )


def _rows(connection: sqlite3.Connection, sql: str) -> list[Row]:
    """No rows where the tables are not those the statement means."""
    try:
        return connection.execute(sql).fetchall()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise
        return []

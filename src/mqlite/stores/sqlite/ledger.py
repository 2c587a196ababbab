"""The schema's migrations, and the ledger of those a file has had."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

SCHEMA_VERSION: Final = "py1"

_FILE: Final = re.compile(r"(\d{4})_(\w+)\.sql")
_BOOKS: Final = """
CREATE TABLE IF NOT EXISTS mqlite_ledger (
    version    INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    checksum   TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS mqlite_meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""
SELECT_APPLIED: Final = "SELECT version, name, checksum FROM mqlite_ledger ORDER BY version"
_INSERT_APPLIED: Final = (
    "INSERT INTO mqlite_ledger (version, name, checksum, applied_at) VALUES (?, ?, ?, ?)"
)
_INSERT_VERSION: Final = (
    "INSERT INTO mqlite_meta (key, value) VALUES ('schema_version', ?) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
_SELECT_SCHEMA: Final = "SELECT name, sql FROM sqlite_master WHERE name LIKE 'mqlite\\_%' ESCAPE '\\' AND sql IS NOT NULL"


@dataclass(frozen=True)
class Migration:
    version: int
    name: str
    script: str

    @property
    def checksum(self) -> str:
        """Of the text with its line ends made equal, so that a checkout changes nothing."""
        return hashlib.sha256(self.script.encode()).hexdigest()


@cache
def migrations() -> tuple[Migration, ...]:
    """All that this version knows, in order."""
    found = []
    for file in resources.files("mqlite.engine.migrations").iterdir():
        if (match := _FILE.fullmatch(file.name)) is not None:
            script = file.read_text(encoding="utf-8").replace("\r\n", "\n")
            found.append(Migration(int(match[1]), match[2], script))
    return tuple(sorted(found, key=lambda migration: migration.version))


def migrate(connection: sqlite3.Connection, now: int) -> None:
    """Apply what is missing, each migration in a transaction of its own. Raises
    sqlite3.Error, the failed migration undone."""
    have = 0
    if "mqlite_ledger" in schema(connection):
        have = len(connection.execute(SELECT_APPLIED).fetchall())
    for migration in migrations()[have:]:
        # executescript commits what is open before it starts; what it opens stays open.
        try:
            connection.executescript(f"BEGIN IMMEDIATE; {_BOOKS} {migration.script}")
            connection.execute(
                _INSERT_APPLIED, (migration.version, migration.name, migration.checksum, now)
            )
            connection.execute(_INSERT_VERSION, (SCHEMA_VERSION,))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def schema(connection: sqlite3.Connection) -> dict[str, str]:
    """Our tables and indexes in a database, by name."""
    return dict(connection.execute(_SELECT_SCHEMA))


@cache
def expected_schema(version: int) -> dict[str, str]:
    """Our tables and indexes after the first `version` migrations."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.executescript(_BOOKS)
        for migration in migrations()[:version]:
            connection.executescript(migration.script)
        return schema(connection)
    finally:
        connection.close()

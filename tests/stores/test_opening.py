"""What can be opened, by whom, and what is left untouched."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from forking import forks
from mqlite.errors import (
    DatabaseLocked,
    InvalidArgument,
    SchemaMismatch,
    Unavailable,
    WrongProcess,
)
from mqlite.stores.sqlite import SqliteStore, ledger, preflight as preflights
from mqlite.stores.sqlite.connection import has_log_reset_bug
from mqlite.stores.sqlite.location import parse_location
from patience import eventually, start

from .toys import bodies, foreign, put


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.suffix != ".lock"}


@pytest.mark.parametrize(
    "database",
    [
        "libsql://host.turso.io",
        "https://host/mq.db",
        "postgres://host/db",
        "postgresql:db",
        "sqlite:///mq.db",
        "LIBSQL:x",
    ],
)
def test_other_schemes_are_refused_by_name(database: str) -> None:
    with pytest.raises(InvalidArgument, match=database.partition(":")[0]):
        SqliteStore(database)


@pytest.mark.parametrize(
    "database",
    [
        "",
        "file:",
        "a\0b",
        "file://machine/mq.db",
        "file:mq.db?mode=ro",
        "file:x?vfs=unix",
        "/",
        "no/x",
    ],
)
def test_what_names_no_database_is_refused(database: str) -> None:
    with pytest.raises(InvalidArgument):
        SqliteStore(database)


@pytest.mark.parametrize("spelling", ["{0}", "{0}/", "file:{0}"])
def test_a_folder_is_answered_with_a_file_in_it(tmp_path: Path, spelling: str) -> None:
    with pytest.raises(InvalidArgument, match=rf"a directory.*such as '{tmp_path}/mq\.db'"):
        SqliteStore(spelling.format(tmp_path))


def test_spellings_of_one_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    (path.parent / "sub").mkdir()
    (path.parent / "link").symlink_to(path.parent)
    (path.parent / "other.db").symlink_to(path)
    for spelling in (
        "mq.db",
        "./mq.db",
        "file:mq.db",
        "file:./mq.db?cache=shared",
        "file:m%71.db",
        f"file://{path}",
        f"file://localhost{path}",
        "sub/../mq.db",
        "link/mq.db",
        "other.db",
    ):
        assert parse_location(spelling).path == path.resolve()
    assert parse_location(Path("a:b.db")).path == path.parent.resolve() / "a:b.db"


@pytest.mark.parametrize("spelling", ["mq.db", "sub/../mq.db", "link/mq.db", "file:mq.db?x=1"])
def test_a_second_owner_is_refused_at_once(
    store: SqliteStore, path: Path, spelling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    (path.parent / "sub").mkdir()
    (path.parent / "link").symlink_to(path.parent)
    with pytest.raises(DatabaseLocked, match=r"mq\.db.*outbox"):
        SqliteStore(spelling)
    store.run(put(b"still works"))


def test_another_process_is_refused_too(store: SqliteStore, path: Path) -> None:
    program = f"from mqlite.stores.sqlite import SqliteStore; SqliteStore({str(path)!r})"
    child = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "DatabaseLocked" in child.stderr


def test_the_lock_file_is_private_and_stays(path: Path) -> None:
    SqliteStore(path).close()
    lock = path.with_name("mq.db.lock")
    assert lock.exists()
    if os.name == "posix":
        assert stat.S_IMODE(lock.stat().st_mode) == 0o600
    SqliteStore(path).close()


def test_memory_is_private() -> None:
    one, two = SqliteStore(":memory:"), SqliteStore("file::memory:?cache=shared")
    one.run(put(b"mine"))
    assert two.run(bodies()) == []
    one.close()
    two.close()


def test_what_was_committed_is_there_again(path: Path) -> None:
    first = SqliteStore(path)
    first.run(put(b"kept"))
    first.close()
    again = SqliteStore(path)
    assert again.run(bodies()) == [b"kept"]
    again.close()


@pytest.mark.parametrize(
    ("given", "level"),
    [("NORMAL", 1), (" full ", 2), ("Off", 0), ("extra", 3)],
)
def test_synchronous_is_read_back(path: Path, given: str, level: int) -> None:
    store = SqliteStore(path, synchronous=given)
    assert store.status().pragmas == {
        "journal_mode": "wal",
        "synchronous": level,
        "foreign_keys": 1,
        "auto_vacuum": 2,
        "temp_store": 2,
        "wal_autocheckpoint": 0,
        "journal_size_limit": 4 * 1024 * 1024,
        "busy_timeout": 0,
        "page_size": 4096,
    }
    store.close()


@pytest.mark.parametrize("given", ["", "2", "NORMALLY", "FULL; DROP TABLE x"])
def test_other_values_of_synchronous_are_refused(path: Path, given: str) -> None:
    with pytest.raises(InvalidArgument, match="OFF, NORMAL, FULL, EXTRA"):
        SqliteStore(path, synchronous=given)
    assert not path.exists()


def test_a_file_with_the_applications_tables_is_fine(path: Path) -> None:
    other = foreign(path)
    other.executescript("CREATE TABLE messages (x); CREATE TABLE meta (key, value)")
    store = SqliteStore(path)
    (warning,) = store.status().warnings
    assert "auto_vacuum" in warning
    store.run(put(b"x"))
    store.close()
    other.close()


def go_file(connection: sqlite3.Connection) -> None:
    for table in ("queues", "messages", "subscriptions", "meta"):
        connection.execute(f"CREATE TABLE {table} (key TEXT, value TEXT)")
    connection.execute("INSERT INTO meta VALUES ('schema_version', '5')")


def newer(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO mqlite_ledger VALUES (9999, 'later', 'x', 0)")


def other_version(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE mqlite_meta SET value = 'py9'")


def altered_ledger(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE mqlite_ledger SET checksum = 'x'")


def emptied_ledger(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM mqlite_ledger")


def other_ledger(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE mqlite_ledger RENAME checksum TO sum")


def no_ledger(connection: sqlite3.Connection) -> None:
    connection.execute("DROP TABLE mqlite_ledger")


def shortened_ledger(connection: sqlite3.Connection) -> None:
    connection.execute(
        "DELETE FROM mqlite_ledger WHERE version = (SELECT max(version) FROM mqlite_ledger)"
    )


def missing_index(connection: sqlite3.Connection) -> None:
    connection.execute("DROP INDEX mqlite_messages_line")


def altered_table(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE mqlite_dedup ADD COLUMN more TEXT")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (newer, "newer version.*upgrade"),
        (other_version, "py9"),
        (altered_ledger, "altered or incomplete"),
        (emptied_ledger, "altered or incomplete"),
        (other_ledger, "altered or incomplete"),
        (no_ledger, "incomplete"),
        (shortened_ledger, "has the table or index mqlite_keys.*incomplete.*from a backup"),
        (missing_index, "mqlite_messages_line is missing"),
        (altered_table, "mqlite_dedup is altered"),
    ],
)
@pytest.mark.parametrize("log", ["log", "no log"])
def test_what_is_not_ours_to_open_stays_as_it_is(
    path: Path, spoil: Callable[[sqlite3.Connection], None], says: str, log: str
) -> None:
    SqliteStore(path).close()
    other = foreign(path)
    spoil(other)
    if log == "no log":
        other.close()
    before = files(path.parent)
    for _ in range(2):
        with pytest.raises(SchemaMismatch, match=says):
            SqliteStore(path)
    after = files(path.parent)
    assert {name: after[name] for name in before if not name.endswith("-shm")} == {
        name: body for name, body in before.items() if not name.endswith("-shm")
    }
    assert after.keys() == before.keys()
    other.close()


def test_a_file_of_the_go_program_is_refused(path: Path) -> None:
    with_go = foreign(path)
    go_file(with_go)
    with_go.close()
    before = files(path.parent)
    with pytest.raises(SchemaMismatch, match=r"Go program.*'5'"):
        SqliteStore(path)
    assert files(path.parent) == before


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_bytes(b"a diary, not a database; " * 100)
    before = files(path.parent)
    with pytest.raises(SchemaMismatch, match="not an SQLite database"):
        SqliteStore(path)
    assert files(path.parent) == before


def test_a_refused_file_is_free_again(path: Path) -> None:
    path.write_bytes(b"x" * 1000)
    for _ in range(2):
        with pytest.raises(SchemaMismatch):
            SqliteStore(path)


def test_an_old_sqlite_is_refused_with_both_versions(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflights.sqlite3, "sqlite_version_info", (3, 36, 0))
    monkeypatch.setattr(preflights.sqlite3, "sqlite_version", "3.36.0")
    with pytest.raises(SchemaMismatch, match=r"3\.36\.0.*3\.37\.0"):
        SqliteStore(path)
    assert not path.exists()


def test_a_file_held_exclusively_is_unavailable(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mqlite.stores.sqlite.connection._OPEN_S", 0.1)
    other = foreign(path)
    other.execute("CREATE TABLE mine (x)")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(Unavailable) as busy:
        SqliteStore(path)
    assert busy.value.reason == "database_locked"
    other.close()


def test_a_file_of_an_earlier_version_is_brought_up_to_date(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = ledger.migrations()
    with monkeypatch.context() as earlier:
        earlier.setattr(ledger, "migrations", lambda: every[:1])
        store = SqliteStore(path)
        store.run(put(b"kept"))
        store.close()
        assert sorted(applied(path)) == [1]
    store = SqliteStore(path)
    assert store.run(bodies()) == [b"kept"]
    store.close()
    assert applied(path) == {each.version: each.checksum for each in every}
    connection = foreign(path)
    assert ledger.schema(connection) == ledger.expected_schema(len(every))
    connection.close()
    SqliteStore(path).close()


def test_a_file_of_a_later_version_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = ledger.migrations()
    SqliteStore(path).close()
    monkeypatch.setattr(ledger, "migrations", lambda: every[:1])
    with pytest.raises(SchemaMismatch, match=r"newer version.*upgrade the package"):
        SqliteStore(path)


def applied(path: Path) -> dict[int, str]:
    """The checksums in the file's ledger, by version."""
    connection = foreign(path)
    try:
        return {version: sum_ for version, _, sum_ in connection.execute(ledger.SELECT_APPLIED)}
    finally:
        connection.close()


def test_a_failed_migration_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *_ = ledger.migrations()
    broken = ledger.Migration(2, "broken", "CREATE TABLE mqlite_half (x); CREATE NONSENSE;")
    monkeypatch.setattr(ledger, "migrations", lambda: (first, broken))
    connection = sqlite3.connect(":memory:", isolation_level=None)
    with pytest.raises(sqlite3.OperationalError):
        ledger.migrate(connection, 0)
    assert len(connection.execute(ledger.SELECT_APPLIED).fetchall()) == 1
    assert "mqlite_half" not in ledger.schema(connection)
    connection.close()


def test_the_schema_is_pinned() -> None:
    """A released migration never changes: add another."""
    assert [migration.version for migration in ledger.migrations()] == list(
        range(1, len(ledger.migrations()) + 1)
    )


@forks
def test_a_forked_child_is_refused(store: SqliteStore) -> None:
    def refused(call: Callable[[], object]) -> bool:
        try:
            call()
        except WrongProcess:
            return True
        return False

    child = os.fork()
    if child == 0:
        calls = (lambda: store.run(put(b"x")), store.begin, store.status, store.close)
        os._exit(0 if all(refused(call) for call in calls) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert store.run(put(b"parent")) == [1]


@pytest.mark.parametrize(
    ("version", "affected"),
    [
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 50, 4), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 54, 1), False),
    ],
)
def test_which_sqlite_has_the_log_reset_bug(version: tuple[int, int, int], affected: bool) -> None:
    assert has_log_reset_bug(version) is affected


def test_opening_waits_for_another_connection(path: Path) -> None:
    SqliteStore(path).close()
    other = foreign(path)
    other.execute("BEGIN IMMEDIATE")
    opening = start(SqliteStore, path)
    eventually(lambda: path.with_name("mq.db.lock").exists())
    other.execute("COMMIT")
    opening.result().close()
    other.close()

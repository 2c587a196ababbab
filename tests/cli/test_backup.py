"""`mqlite backup`: a snapshot beside the owner, whole or absent, and a look at one."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import mqlite

from .conftest import Run

Ok = Callable[..., str]
Process = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """Where snapshots go, which does not exist yet."""
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder / "mq-1.db"


@pytest.fixture
def filled(database: Path, ok: Ok) -> Path:
    """A closed database with messages."""
    with mqlite.open(str(database)) as mq:
        mq.create_queue("jobs")
        mq.send_batch("jobs", [f"{i} " + "x" * 2000 for i in range(300)])
    return database


@pytest.fixture
def taken(filled: Path, snapshot: Path, ok: Ok) -> Path:
    ok("backup", str(snapshot))
    return snapshot


def contents(database: Path) -> dict[str, bytes]:
    """A database file and its log; the log's index belongs to whoever reads."""
    files = (database, database.with_name(database.name + "-wal"))
    return {file.name: file.read_bytes() for file in files if file.exists()}


def tables(database: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table, and what the tables and indexes are."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        schema = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        names = [name for kind, name, _ in schema if kind == "table"]
        found = {
            name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for name in names
        }
    return found | {"": sorted(schema)}


def damage(file: Path, offset: int, junk: bytes) -> None:
    with file.open("rb+") as opened:
        opened.seek(offset)
        opened.write(junk)


def bodies(database: Path) -> list[bytes]:
    with mqlite.open(str(database)) as mq:
        return [message.body for message in mq.peek("jobs", max_messages=1000)]


def test_a_snapshot_is_a_database_with_a_checksum(
    filled: Path, snapshot: Path, ok: Ok, tmp_path: Path
) -> None:
    printed = json.loads(ok("backup", str(snapshot), "--output", "json"))
    digest = hashlib.sha256(snapshot.read_bytes()).hexdigest()
    assert printed == {
        "action": "backup",
        "file": str(snapshot),
        "bytes": snapshot.stat().st_size,
        "sha256": digest,
    }
    checksum = snapshot.with_name("mq-1.db.sha256")
    assert checksum.read_text() == f"{digest}  mq-1.db\n"
    assert sorted(os.listdir(snapshot.parent)) == ["mq-1.db", "mq-1.db.sha256"]
    shutil.copy(snapshot, tmp_path / "restored.db")
    assert bodies(tmp_path / "restored.db") == bodies(filled)


def test_only_their_owner_can_read_them(taken: Path) -> None:
    for file in taken.parent.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600


def test_sha256sum_reads_the_checksum(taken: Path) -> None:
    command = ["sha256sum", "--check", "--strict", f"{taken.name}.sha256"]
    assert subprocess.run(command, cwd=taken.parent, capture_output=True).returncode == 0


def test_a_restored_snapshot_still_gives_pages_back(taken: Path) -> None:
    with mqlite.open(str(taken)) as mq:
        assert mq.status().warnings == []


def test_the_owners_files_are_left_as_they_are(
    database: Path, snapshot: Path, process: Process
) -> None:
    # With a clock of its own the owner checkpoints nothing by itself.
    with mqlite.open(str(database), clock=mqlite.ManualClock()) as mq:
        mq.create_queue("jobs", dedup_window="1h", retain_completed="1d")
        mq.subscribe("events", "eu")
        mq.send("events", "x", message_id="once")
        mq.receive("eu", attempt_id="a-1")
        mq.send_batch("jobs", [f"{i} " + "x" * 2000 for i in range(301)])
        mq.receive("jobs")[0].complete()
        before = contents(database)
        assert len(before["mq.db-wal"]) > 600_000
        done = process("backup", str(snapshot))
        assert (done.returncode, done.stderr) == (0, "")
        assert contents(database) == before
        assert tables(snapshot) == tables(database)
        mq.send("jobs", "after")
    assert len(bodies(snapshot)) == 300


def test_the_log_a_killed_owner_left_is_read_and_left_as_it_is(
    database: Path, snapshot: Path, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = database.with_name("killed.db")
    with mqlite.open(str(database), clock=mqlite.ManualClock()) as mq:
        mq.create_queue("jobs")
        mq.send_batch("jobs", ["x" * 2000] * 300)
        for name, content in contents(database).items():
            killed.with_name(name.replace("mq.db", "killed.db")).write_bytes(content)
    before = contents(killed)
    monkeypatch.setenv("MQLITE_DB", str(killed))
    # The only connection there is: nothing may be folded in when it closes.
    assert process("backup", str(snapshot)).returncode == 0
    assert contents(killed) == before
    assert len(bodies(snapshot)) == 300


def test_a_transaction_that_is_open_is_not_in_it(filled: Path, snapshot: Path, cli: Run) -> None:
    with mqlite.open(str(filled)) as mq:
        with mq.transaction() as tx:
            tx.send("jobs", "not yet")
            assert cli("backup", str(snapshot)).code == 0
        assert mq.stats("jobs").active == 301
    assert len(bodies(snapshot)) == 300


@pytest.mark.parametrize("taken_name", ["mq-1.db", "mq-1.db.sha256", "mq-1.db-wal"])
def test_nothing_is_overwritten(filled: Path, snapshot: Path, cli: Run, taken_name: str) -> None:
    other = snapshot.with_name(taken_name)
    other.write_bytes(b"precious")
    result = cli("backup", str(snapshot))
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {other} exists")
    assert result.err.count("\n") == 1
    assert [file.read_bytes() for file in snapshot.parent.iterdir()] == [b"precious"]


@pytest.mark.parametrize("appearing", ["mq-1.db", "mq-1.db.sha256"])
def test_nothing_that_appears_meanwhile_is_overwritten(
    filled: Path,
    snapshot: Path,
    cli: Run,
    appearing: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mqlite.stores.sqlite import backup

    examine = backup._examine

    def examine_slowly(path: Path, shown: str) -> list[str]:
        snapshot.with_name(appearing).write_bytes(b"precious")
        return examine(path, shown)

    monkeypatch.setattr(backup, "_examine", examine_slowly)
    result = cli("backup", str(snapshot))
    assert result.code == 1
    assert "exists" in result.err
    assert [file.read_bytes() for file in snapshot.parent.iterdir()] == [b"precious"]


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("{folder}/none/x.db", "the directory '{folder}/none' does not exist"),
        ("{folder}", "'{folder}' names no file"),
        (":memory:", "a snapshot is a file: give a path"),
        ("{folder}/mq.db-wal", "is named like a part of another database"),
        ("{folder}/a\\b.db", "has characters that a checksum file cannot name"),
    ],
)
def test_a_target_that_cannot_be(
    filled: Path, tmp_path: Path, cli: Run, target: str, problem: str
) -> None:
    result = cli("backup", target.format(folder=tmp_path))
    assert result.code == 1
    assert problem.format(folder=tmp_path) in result.err
    assert result.err.count("\n") == 1


def make_other(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (text)")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: None, "mq.db does not exist"),
        (make_other, "mq.db holds no queue"),
        (lambda path: path.write_text("not a database at all" * 100), "is not an SQLite database"),
    ],
)
def test_a_source_that_is_no_queue(
    database: Path, snapshot: Path, cli: Run, make: Callable[[Path], object], problem: str
) -> None:
    make(database)
    result = cli("backup", str(snapshot))
    assert result.code == 1
    assert problem in result.err
    assert result.err.count("\n") == 1
    assert list(snapshot.parent.iterdir()) == []


def test_a_source_of_another_user(
    filled: Path, snapshot: Path, cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: not Path(path).samefile(filled))
    result = cli("backup", str(snapshot))
    assert result.code == 1
    assert f"{filled} cannot be read by this user" in result.err
    assert list(snapshot.parent.iterdir()) == []


def test_memory_has_no_snapshot(snapshot: Path, cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQLITE_DB", ":memory:")
    assert cli("backup", str(snapshot)) == (1, "", "error: a queue in memory has no file\n")


def test_a_damaged_source_leaves_no_snapshot(filled: Path, snapshot: Path, cli: Run) -> None:
    damage(filled, 30 * 4096, os.urandom(20 * 4096))
    result = cli("backup", str(snapshot))
    assert result.code == 1
    assert "damaged" in result.err
    assert list(snapshot.parent.iterdir()) == []


def test_orphans_of_the_queue_fail_it_and_those_of_the_application_are_warned_about(
    filled: Path, snapshot: Path, cli: Run
) -> None:
    with closing(sqlite3.connect(filled)) as connection:
        connection.executescript(
            "CREATE TABLE customers (id INTEGER PRIMARY KEY);"
            "CREATE TABLE orders (customer INTEGER REFERENCES customers);"
            "INSERT INTO orders VALUES (7);"
        )
    result = cli("backup", str(snapshot))
    assert result.code == 0
    assert "warning: the application's table orders has rows" in result.err
    with mqlite.open(str(filled)) as mq:
        mq.subscribe("events", "eu")
    with closing(sqlite3.connect(filled)) as connection:
        connection.execute("DELETE FROM mqlite_queues")  # SQLite checks no reference by default
        connection.commit()
    result = cli("backup", str(snapshot.with_name("mq-2.db")))
    assert result.code == 1
    assert "refer to rows that are not there" in result.err
    assert not snapshot.with_name("mq-2.db").exists()


def test_a_broker_is_not_asked(snapshot: Path, cli: Run) -> None:
    result = cli("backup", str(snapshot), "--endpoint", "http://127.0.0.1:1")
    assert result.code == 1
    assert "not through an endpoint" in result.err


def test_a_journal_that_sqlite_leaves_on_a_full_disk_is_taken_away(
    filled: Path, snapshot: Path, cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(partial: Path) -> None:
        partial.with_name(f"{partial.name}-journal").touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("mqlite.stores.sqlite.backup._flush", full)
    result = cli("backup", str(snapshot))
    assert result.code == 1
    assert "No space left" in result.err
    assert list(snapshot.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "code", "said"), [("SIGINT", 1, "interrupted"), ("SIGTERM", 143, "terminated")]
)
def test_interrupted_it_leaves_nothing(
    filled: Path, snapshot: Path, name: str, code: int, said: str
) -> None:
    program = (
        "import signal; from mqlite.cli import main; from mqlite.stores.sqlite import backup;"
        f"backup._flush = lambda path: signal.raise_signal(signal.{name});"
        f"raise SystemExit(main(['backup', {str(snapshot)!r}]))"
    )
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (child.returncode, child.stderr) == (code, f"error: {said}\n")
    assert list(snapshot.parent.iterdir()) == []


def test_ctrl_c_ends_a_statement_that_takes_long(tmp_path: Path) -> None:
    """Without the look for signals it would run to its end, which is in some hours."""
    program = (
        "import signal, sys; from mqlite.stores.sqlite import backup\n"
        "with backup._reading(sys.argv[1], '') as connection:\n"
        "    print('running', flush=True)\n"
        "    connection.execute('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
        " WHERE i < 1e12) SELECT count(*) FROM n').fetchone()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, (tmp_path / "empty.db").as_uri()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.send_signal(signal.SIGINT)
        try:
            _, errors = child.communicate(timeout=60)
        finally:
            child.kill()
    assert errors.rstrip().endswith(b"KeyboardInterrupt")


# A look at a snapshot


def test_a_snapshot_is_verified(taken: Path, ok: Ok) -> None:
    before = contents(taken)
    digest = hashlib.sha256(taken.read_bytes()).hexdigest()
    size = taken.stat().st_size
    assert ok("backup", "--verify", str(taken)) == (
        f"ok: action=verify file={taken} bytes={size} sha256={digest}\n"
    )
    assert contents(taken) == before
    assert len(list(taken.parent.iterdir())) == 2


def test_a_snapshot_is_verified_beside_a_broker(
    taken: Path, ok: Ok, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MQLITE_ENDPOINT", "http://127.0.0.1:1")
    assert ok("backup", "--verify", str(taken)).startswith("ok: ")


def test_a_changed_snapshot_does_not_match(taken: Path, cli: Run) -> None:
    damage(taken, 60, b"\x01")  # user_version: a database like before, but not the same
    result = cli("backup", "--verify", str(taken))
    assert result == (1, "", f"error: {taken} does not match {taken}.sha256\n")


def test_a_snapshot_without_its_checksum(taken: Path, cli: Run) -> None:
    taken.with_name("mq-1.db.sha256").unlink()
    result = cli("backup", "--verify", str(taken))
    assert result == (1, "", f"error: {taken}.sha256: No such file or directory\n")


def test_a_damaged_snapshot_is_found_under_a_fresh_checksum(taken: Path, cli: Run) -> None:
    damage(taken, 30 * 4096, os.urandom(20 * 4096))
    digest = hashlib.sha256(taken.read_bytes()).hexdigest()
    taken.with_name("mq-1.db.sha256").write_text(f"{digest}  mq-1.db\n")
    result = cli("backup", "--verify", str(taken))
    assert result.code == 1
    assert "damaged" in result.err


def test_a_snapshot_with_a_log_beside_it_is_refused(taken: Path, cli: Run) -> None:
    taken.with_name("mq-1.db-wal").write_bytes(b"")
    result = cli("backup", "--verify", str(taken))
    assert result.code == 1
    assert "mq-1.db-wal exists" in result.err


@pytest.mark.parametrize("leads_to", ["itself", "nowhere"])
def test_a_link_is_not_replaced(filled: Path, snapshot: Path, cli: Run, leads_to: str) -> None:
    snapshot.symlink_to(snapshot if leads_to == "itself" else snapshot.with_name("nowhere"))
    cli("backup", str(snapshot))
    assert snapshot.is_symlink()

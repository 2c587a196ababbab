"""Failures and recoveries in the log, and in a private file of their own."""

from __future__ import annotations

import errno
import json
import logging
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psutil
import pytest

import mqlite
from mqlite import diagnostics
from mqlite.clock import ManualClock
from mqlite.diagnostics import DiagnosticHandler, RotatingFile, diagnostic_log
from mqlite.errors import InvalidArgument, Unavailable
from mqlite.observation.faults import detail, fault_of
from mqlite.observation.reporting import Reporter
from observation.looks import broken, operation, task

LOGGER = logging.getLogger("mqlite")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "diagnostics.jsonl"


@pytest.fixture
def keep(file: Path) -> Iterator[Callable[[], Callable[[], None]]]:
    """Opens the log on the file; answers what closes it, and so waits for what is written."""
    with ExitStack() as stack:

        def open_() -> Callable[[], None]:
            inner = stack.enter_context(ExitStack())
            inner.enter_context(diagnostic_log(str(file), LOGGER))
            return inner.close

        yield open_


@pytest.fixture(autouse=True)
def level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mqlite")


def records(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def report(reporter: Reporter, error: Exception, step: str = "send") -> None:
    reporter.failed("storage.failure", detail(error, fault_of(error), step, 7), error)


def test_a_failure_in_the_log_has_the_fingerprint_of_the_observation(
    mq: mqlite.Embedded, path: Path, file: Path, keep: Any, caplog: pytest.LogCaptureFixture
) -> None:
    close = keep()
    with broken(path), pytest.raises(Exception, match="no such table"):
        mq.send("q", b"the body")
    close()
    last = operation(mq.observe(), "write", "error", "other").last_error
    assert last is not None
    [record] = records(file)
    assert record == {
        "event": "storage.failure",
        "at_ms": last.at_ms,
        "operation": "write",
        "step": "send",
        "category": "schema",
        "explanation": last.explanation,
        "fingerprint": last.fingerprint,
        "sqlite_code": "SQLITE_ERROR",
        "provider": "OperationalError: no such table: mqlite_messages",
    }
    [line] = [m for m in caplog.messages if m.startswith("storage.failure")]
    assert "step=send category=schema" in line
    assert f"fingerprint={last.fingerprint}" in line


def test_a_failing_task_and_its_recovery(
    mq: mqlite.Embedded, path: Path, clock: ManualClock, file: Path, keep: Any
) -> None:
    close = keep()
    with broken(path):
        mq.maintain()
    mq.maintain()
    mq.maintain()
    close()
    of_locks = [each for each in records(file) if each.get("task") == "locks"]
    failure, recovery = of_locks
    assert (failure["event"], failure["step"]) == ("maintenance.failure", "expire")
    assert recovery == {
        "event": "maintenance.recovered",
        "at_ms": clock.now(),
        "task": "locks",
        "failures": 1,
    }
    shown = task(mq.observe(), "locks").diagnostics
    assert shown is not None
    assert failure["fingerprint"] == shown.failures[0].fingerprint


def test_requests_and_other_log_lines_stay_out(file: Path, keep: Any, mq: mqlite.Embedded) -> None:
    close = keep()
    LOGGER.error("something else")
    mq.send("q", b"x")
    mq.maintain()
    with pytest.raises(mqlite.LockLost):
        mq.complete("q", 1, "0" * 32)
    close()
    assert records(file) == []


def test_failures_of_one_kind_are_told_of_once_a_second(
    file: Path, keep: Any, caplog: pytest.LogCaptureFixture
) -> None:
    now = 100.0
    reporter = Reporter(LOGGER, lambda: now)
    close = keep()
    full = Unavailable("no room", reason="disk_full")
    for _ in range(5):
        report(reporter, full)
    report(reporter, Unavailable("locked", reason="database_locked"))
    now += 1
    report(reporter, full)
    close()
    assert [(each["category"], each.get("omitted")) for each in records(file)] == [
        ("storage", None),
        ("busy", None),
        ("storage", 4),
    ]


def test_the_file_is_private_and_added_to(file: Path, keep: Any) -> None:
    file.write_text('{"event":"earlier"}\n')
    file.chmod(0o644)
    for number in range(2):
        close = keep()
        report(Reporter(LOGGER), ValueError(str(number)))
        close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.get("provider") for each in records(file)] == [
        None,
        "ValueError: 0",
        "ValueError: 1",
    ]


def test_it_rotates_and_keeps_three_archives(
    file: Path, keep: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnostics, "MAX_BYTES", 1000)
    close = keep()
    reporter = Reporter(LOGGER)
    for number in range(40):
        report(reporter, ValueError(f"number {number}"), step=f"step{number}")
    close()
    archives = [file, *(file.with_name(f"{file.name}.{number}") for number in (1, 2, 3))]
    assert sorted(file.parent.glob("diagnostics*")) == archives
    newest_first = [each for one in archives for each in reversed(records(one))]
    numbers = [int(each["step"].removeprefix("step")) for each in newest_first]
    assert numbers == list(range(39, 39 - len(numbers), -1))
    assert len(numbers) >= 8
    for each in archives:
        assert each.stat().st_size <= 1000
        assert stat.S_IMODE(each.stat().st_mode) == 0o600


def test_the_documented_size() -> None:
    assert (diagnostics.MAX_BYTES, diagnostics.ARCHIVES) == (4 * 1024 * 1024, 3)


def test_each_record_is_on_the_disk_before_the_next(
    file: Path, keep: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    did: list[str] = []
    write, fsync = os.write, os.fsync

    def writing(fd: int, data: bytes) -> int:
        did.append("write")
        return write(fd, data)

    def syncing(fd: int) -> None:
        did.append("fsync")
        fsync(fd)

    monkeypatch.setattr(diagnostics.os, "write", writing)
    monkeypatch.setattr(diagnostics.os, "fsync", syncing)
    close = keep()
    for number in range(3):
        report(Reporter(LOGGER), ValueError(str(number)))
    close()
    assert did == ["write", "fsync"] * 3


@pytest.mark.parametrize(
    ("path", "why"),
    [("nowhere/log.jsonl", "No such file or directory"), (".", ".* is not a file")],
)
def test_a_path_that_cannot_be_used_is_refused(tmp_path: Path, path: str, why: str) -> None:
    with pytest.raises(InvalidArgument, match=f"cannot be the diagnostic log: {why}; give a new"):
        diagnostic_log(str(tmp_path / path), LOGGER).__enter__()


def found(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        each.name: (each.read_bytes(), each.stat().st_mode)
        for each in folder.iterdir()
        if each.is_file()
    }


def refused(path: Path, database: Path | None = None) -> str:
    """The reason for which a path is refused, and nothing done to what is in its folder."""
    before = found(path.parent)
    with pytest.raises(InvalidArgument) as caught:
        diagnostic_log(str(path), LOGGER, database=database).__enter__()
    assert found(path.parent) == before
    shown, _, why = str(caught.value).partition(" cannot be the diagnostic log: ")
    assert shown == repr(str(path))
    reason, _, accepted = why.partition("; ")
    assert accepted == "give a new or empty file, or an earlier diagnostic log"
    return reason


@pytest.mark.parametrize("part", ["", "-wal", "-shm", "-journal", ".lock"])
@pytest.mark.parametrize("content", [None, b"", b'{"event":"as if it were a log"}\n'])
def test_the_files_of_the_database_are_refused(
    tmp_path: Path, part: str, content: bytes | None
) -> None:
    database, file = tmp_path / "mq.db", tmp_path / f"mq.db{part}"
    link = tmp_path / "link"
    link.symlink_to(file)
    if content is not None:
        file.write_bytes(content)
        hard = tmp_path / "hard link"
        hard.hardlink_to(file)
        assert refused(hard, database) == f"{hard} is a file of the database {database}"
    assert refused(file, database) == f"{file} is a file of the database {database}"
    assert refused(link, database) == f"{file} is a file of the database {database}"


def test_a_database_in_memory_has_no_files(file: Path) -> None:
    with diagnostic_log(str(file), LOGGER, database=":memory:"):
        report(Reporter(LOGGER), ValueError("x"))
    assert len(records(file)) == 1


@pytest.mark.parametrize("archive", ["", ".1", ".2", ".3"])
def test_a_file_that_holds_something_else_is_neither_added_to_nor_renamed(
    file: Path, archive: str
) -> None:
    other = file.with_name(file.name + archive)
    for content in (b"SQLite format 3\0", b"text\n", b"{}\n", b'{"events":[]}', b'{ "event":1}'):
        other.write_bytes(content)
        assert refused(file) == f"{other} holds something else"
    other.unlink()
    other.mkdir()
    assert refused(file) == f"{other} is not a file"


def test_an_archive_that_would_be_the_database_is_refused(file: Path) -> None:
    database = file.with_name(f"{file.name}.2")
    assert refused(file, database) == f"{database} is a file of the database {database}"


def test_what_a_full_disk_took_of_a_record_is_a_log(file: Path, keep: Any) -> None:
    file.write_bytes(b'{"ev')
    close = keep()
    report(Reporter(LOGGER), ValueError("x"))
    close()
    assert file.read_bytes().startswith(b'{"ev{"event":"storage.failure"')


def test_a_refusal_does_not_end_the_locks_of_an_open_database(tmp_path: Path) -> None:
    """Closing a file ends the locks that the process has on it, whoever took them."""
    database = tmp_path / "app.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InvalidArgument):
            diagnostic_log(str(database), LOGGER).__enter__()
        program = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN EXCLUSIVE')"
        command = [sys.executable, "-c", program, str(database)]
        other = subprocess.run(command, capture_output=True, text=True)
    assert "database is locked" in other.stderr


def test_a_disk_that_fails_is_warned_about_once_a_streak(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    full = True
    write = os.write

    def writing(fd: int, data: bytes) -> int:
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data)

    monkeypatch.setattr(diagnostics.os, "write", writing)
    handler = DiagnosticHandler(RotatingFile(file))
    handler.addFilter(lambda record: hasattr(record, "diagnostic"))
    LOGGER.addHandler(handler)
    for failing in (True, True, False, True, True):
        full = failing
        report(Reporter(LOGGER), ValueError("x"))
    LOGGER.removeHandler(handler)
    handler.file.close()
    warnings = [
        m for m in caplog.messages if m.startswith(f"the diagnostic log {file} cannot be written")
    ]
    assert len(warnings) == 2
    assert len([m for m in caplog.messages if m.startswith("storage.failure")]) == 5
    assert len(records(file)) == 1


def test_the_broker_keeps_the_file_it_is_told_to(tmp_path: Path, file: Path) -> None:
    database = tmp_path / "mq.db"
    environment = {name: value for name, value in os.environ.items() if "MQLITE" not in name}
    environment |= {"MQLITE_DB": f"file:{database}", "MQLITE_DIAGNOSTIC_LOG": str(file)}
    command = [sys.executable, "-m", "mqlite", "serve", "--addr", "127.0.0.1:0"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as broker:
        assert broker.stderr is not None
        for line in broker.stderr:
            if line.startswith("ready"):
                break
        with broken(database):
            for line in broker.stderr:
                if "maintenance.failure" in line:
                    break
        broker.send_signal(signal.SIGTERM)
        broker.communicate(timeout=30)
    events = {each["event"] for each in records(file)}
    assert "maintenance.failure" in events
    assert broker.returncode == 0


def test_bytes_of_a_file_name_that_are_no_text_stop_nothing(file: Path, keep: Any) -> None:
    close = keep()
    for text in ("cannot open /tmp/\udcff.db", "the next"):
        report(Reporter(LOGGER), ValueError(text))
    close()
    assert [each["provider"] for each in records(file)] == [
        "ValueError: cannot open /tmp/\\udcff.db",
        "ValueError: the next",
    ]


def test_a_file_that_was_moved_away_is_begun_anew(file: Path) -> None:
    moved = file.with_name("moved")
    log = RotatingFile(file)
    log.write(b"1\n")
    file.rename(moved)
    log.write(b"2\n")
    file.unlink()
    log.write(b"3\n")
    log.close()
    assert (moved.read_bytes(), file.read_bytes()) == (b"1\n", b"3\n")


def test_a_folder_that_is_gone_is_an_error_until_it_is_back(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "log"
    file.parent.mkdir()
    log = RotatingFile(file)
    file.unlink()
    file.parent.rmdir()
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            log.write(b"lost\n")
    file.parent.mkdir()
    log.write(b"kept\n")
    log.close()
    assert file.read_bytes() == b"kept\n"


def test_archives_lie_beside_the_file_and_not_beside_a_link_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnostics, "MAX_BYTES", 300)
    folder = tmp_path / "large"
    folder.mkdir()
    link = tmp_path / "link"
    link.symlink_to(folder / "log")
    with diagnostic_log(str(link), LOGGER):
        for step in ("a", "b", "c"):
            report(Reporter(LOGGER), ValueError(step), step=step)
    assert sorted(os.listdir(folder)) == ["log", "log.1", "log.2"]
    assert sorted(os.listdir(tmp_path)) == ["large", "link"]
    assert link.is_symlink()


def test_a_file_that_cannot_be_made_private_is_not_kept_open(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(path: Path, mode: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    log = RotatingFile(file)
    log.close()
    before = psutil.Process().num_fds()
    monkeypatch.setattr(diagnostics.os, "chmod", refusing)
    for _ in range(5):
        with pytest.raises(PermissionError):
            log.write(b"lost\n")
    assert psutil.Process().num_fds() == before


def test_two_that_keep_one_file_share_its_archives(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnostics, "MAX_BYTES", 100)
    one, other = RotatingFile(file), RotatingFile(file)
    lines = [b"%09d\n" % number for number in range(40)]
    for line in lines:
        one.write(line)
        one, other = other, one
    one.close()
    other.close()
    archives = [file.with_name(f"{file.name}.{number}") for number in (3, 2, 1)]
    assert [each.stat().st_size for each in (*archives, file)] == [100] * 4
    assert b"".join(each.read_bytes() for each in (*archives, file)) == b"".join(lines)


def test_a_traceback_is_redacted_too(caplog: pytest.LogCaptureFixture) -> None:
    within, without = "Bearer abc.def", "password=hunter2"
    try:
        try:
            raise ValueError(within)
        except ValueError as inner:
            raise RuntimeError(without) from inner
    except RuntimeError as error:
        report(Reporter(LOGGER), error)
    assert "abc.def" not in caplog.text
    assert "hunter2" not in caplog.text
    assert "ValueError: Bearer [redacted]" in caplog.text
    assert "RuntimeError: password=[redacted]" in caplog.text
    assert "test_a_traceback_is_redacted_too" in caplog.text

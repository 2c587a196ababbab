"""The systemd units: what systemd says of them, and their commands and the restore of the page run
in a folder of our own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mqlite
from docs import pages
from ops.test_deployment import OPS

UNITS = OPS / "systemd"
SYSUSERS = UNITS / "sysusers.d/mqlite.conf"
MQLITE = str(Path(sys.executable).with_name("mqlite"))
DAY_S = 24 * 60 * 60


def settings(unit: str, name: str) -> list[str]:
    return re.findall(rf"^{name}=(.*)$", (UNITS / unit).read_text(), re.MULTILINE)


def here(line: str, folder: Path) -> str:
    """A command of the machine's as anybody can run it: our program, our folder, our user."""
    for theirs, ours in (
        ("/opt/mqlite/bin/mqlite", MQLITE),
        ("/var/lib/mqlite", f"{folder}/mqlite"),
        ("runuser -u mqlite --", "exec"),
        ("--owner=mqlite --group=mqlite", ""),
    ):
        line = line.replace(theirs, ours)
    return line


def run(line: str, folder: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "MQLITE_DB": f"file:{folder}/mqlite/mq.db"}
    done = subprocess.run(
        ["/bin/sh", "-e", "-c", here(line, folder)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def run_backup_unit(folder: Path) -> None:
    for step in ("ExecStartPre", "ExecStart", "ExecStartPost"):
        [line] = settings("mqlite-backup.service", step)
        run(line.replace("$$", "$").replace("%%", "%"), folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As after some days: a database with a message, and the directory of the snapshots."""
    (tmp_path / "mqlite/backups").mkdir(parents=True)
    with mqlite.open(tmp_path / "mqlite/mq.db") as mq:
        mq.create_queue("q")
        mq.send("q", "kept")
    return tmp_path


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not here; get it with: apt-get install systemd")
    units = []
    for unit in sorted(UNITS.glob("*.*er*")):
        units.append(tmp_path / unit.name)
        # It looks for the program, which is installed elsewhere here.
        units[-1].write_text(unit.read_text().replace("/opt/mqlite/bin/mqlite", MQLITE))
    done = subprocess.run(
        [analyze, "verify", *map(str, units)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_user_of_the_units_is_one_that_is_made(tmp_path: Path) -> None:
    units = ("mqlite.service", "mqlite-backup.service")
    [user] = {user for unit in units for user in settings(unit, "User")}
    assert re.search(rf"^u {user} - ", SYSUSERS.read_text(), re.MULTILINE)
    assert [settings(unit, "DynamicUser") for unit in units] == [[], []]
    sysusers = shutil.which("systemd-sysusers")
    if sysusers is None:
        pytest.skip("systemd-sysusers is not here; get it with: apt-get install systemd")
    done = subprocess.run(
        [sysusers, "--dry-run", f"--root={tmp_path}", str(SYSUSERS)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f"Creating user '{user}'" in done.stderr


def test_both_services_keep_the_file_from_others_and_mean_the_same_one() -> None:
    for name in ("User", "UMask", "StateDirectoryMode"):
        assert settings("mqlite.service", name) == settings("mqlite-backup.service", name) != []
    database = "MQLITE_DB=file:/var/lib/mqlite/mq.db"
    for unit in ("mqlite.service", "mqlite-backup.service"):
        assert database in settings(unit, "Environment")


def test_the_backup_unit_takes_a_snapshot(folder: Path) -> None:
    run_backup_unit(folder)
    name, checksum = sorted(file.name for file in (folder / "mqlite/backups").iterdir())
    assert re.fullmatch(r"mq-\d{8}T\d{6}Z\.db", name)
    assert checksum == f"{name}.sha256"


def test_the_backup_unit_clears_up_what_is_old_and_what_was_left_unfinished(folder: Path) -> None:
    backups, now = folder / "mqlite/backups", time.time()
    ages = {
        "mq-1.db": 15.5,
        "mq-1.db.sha256": 15.5,
        ".mq-2.db.x.partial": 0.6,
        ".mq-2.db.x.partial-journal": 0.6,
        "mq-3.db": 13,
        ".mq-4.db.y.partial": 0,
        "notes": 99,
    }
    for name, days in ages.items():
        (backups / name).touch()
        os.utime(backups / name, times=(now - days * DAY_S,) * 2)
    run_backup_unit(folder)
    left = {file.name for file in backups.iterdir()} & ages.keys()
    assert left == {"mq-3.db", ".mq-4.db.y.partial", "notes"}


def test_the_restore_of_the_page(folder: Path) -> None:
    run_backup_unit(folder)
    [snapshot] = (folder / "mqlite/backups").glob("*.db")
    with mqlite.open(folder / "mqlite/mq.db") as mq:
        mq.send("q", "after the snapshot")
    blocks = [block for block in pages.shell("docs/operations.md") if "runuser" in str(block)]
    [[*steps, serve], [doctor, _]] = blocks
    script = "\n".join(step for step in steps if not step.startswith("systemctl "))
    script, named = re.subn(r"(?m)(?<=/backups/)mq-\w+\.db$", snapshot.name, script)
    assert named == 1
    run(script, folder)
    assert (folder / "mqlite").stat().st_mode & 0o777 == 0o700
    assert (folder / "mqlite/mq.db").stat().st_mode & 0o777 == 0o600
    assert (folder / "mqlite-before/mq.db").exists()
    serves_until_interrupted(here(serve, folder))
    run(doctor, folder)
    with mqlite.open(folder / "mqlite/mq.db") as mq:
        assert [message.text for message in mq.peek("q")] == ["kept"]


def serves_until_interrupted(line: str) -> None:
    command = re.sub(r"--addr \S+", "--addr 127.0.0.1:0", line)
    with subprocess.Popen(["/bin/sh", "-c", command], stderr=subprocess.PIPE, text=True) as broker:
        try:
            assert broker.stderr is not None
            said = broker.stderr.readline()
            while said and not said.startswith("ready: "):
                said = broker.stderr.readline()
            assert said
        finally:
            broker.send_signal(signal.SIGINT)
            broker.communicate(timeout=60)
    assert broker.returncode == 0

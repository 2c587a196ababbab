"""The command run in this process, and as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import mqlite
from mqlite.cli import main


class Result(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment without settings but a database of its own."""
    for name in [name for name in os.environ if name.startswith("MQLITE_")]:
        monkeypatch.delenv(name)
    path = tmp_path / "mq.db"
    monkeypatch.setenv("MQLITE_DB", f"file:{path}")
    return path


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process."""

    def run(*args: str) -> Result:
        capsys.readouterr()
        code = main(args)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def ok(cli: Run) -> Callable[..., str]:
    """Run a command that has to succeed; answers what it printed."""

    def run(*args: str) -> str:
        result = cli(*args)
        assert result.code == 0, result.err
        return result.out

    return run


@pytest.fixture
def process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command as a process."""

    def run(*args: str, input: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "mqlite", *args]
        return subprocess.run(command, input=input, text=True, capture_output=True, timeout=60)

    return run


@pytest.fixture
def shell() -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Run a shell line in which `$mqlite` is the command."""

    def run(line: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"mqlite": f"{sys.executable} -m mqlite"}
        return subprocess.run(
            ["bash", "-c", line], env=environment, text=True, capture_output=True, timeout=60
        )

    return run


@pytest.fixture
def mq(database: Path) -> Iterator[mqlite.Embedded]:
    """The database, open in the test; close it before a command uses it."""
    with mqlite.open(f"file:{database}") as opened:
        yield opened

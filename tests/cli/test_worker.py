"""`mqlite worker`: finding the handlers, running them as a process, stopping by signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mqlite
from cli.conftest import Run

TASKS = """
import os
import time
import mqlite

workers = mqlite.Workers()
empty = mqlite.Workers()
number = 3

@workers.worker("jobs", drain_timeout="1s")
def job(message):
    print("began", message.text, flush=True)
    if message.text == "slow":
        time.sleep(0.5)
    if message.text == "endless":
        time.sleep(60)
    if message.text == "crash":
        os._exit(9)
    if message.text == "bad":
        raise ValueError("no good")
    print("ended", message.text, flush=True)
"""

LOOKALIKE = """
import mqlite

class Holder:
    workers = mqlite.Workers()
    workers.worker("jobs")(print)

class Failing:
    @property
    def workers(self):
        raise RuntimeError

holder = Holder()
failing = Failing()
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with a module of workers, as the current directory."""
    (tmp_path / "tasks.py").write_text(TASKS)
    (tmp_path / "broken.py").write_text("x = 1\ny = 1 / 0\n")
    (tmp_path / "typo.py").write_text("import os\nos.pahts\n")
    (tmp_path / "ending.py").write_text("import sys\nsys.exit(3)\n")
    (tmp_path / "twice.py").write_text(TASKS + "\nworkers.worker('jobs')(job)\n")
    (tmp_path / "lookalike.py").write_text(LOOKALIKE)
    monkeypatch.chdir(tmp_path)
    paths, modules = sys.path[:], set(sys.modules)
    yield tmp_path
    sys.path[:] = paths
    for name in set(sys.modules) - modules:
        if name in ("tasks", "broken", "typo", "owner", "ending", "twice", "lookalike"):
            del sys.modules[name]


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    processes: list[subprocess.Popen[str]] = []

    def run(*args: str, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "mqlite", "worker", *args],
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield run
    for process in processes:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = process.stdout.read(), process.stderr.read()
    return process.wait(30), out, err


@pytest.mark.parametrize(
    ("app", "complaint"),
    [
        ("tasks", "give the workers as <module:name>"),
        ("nowhere:workers", "cannot import nowhere: ModuleNotFoundError"),
        ("broken:workers", "cannot import broken: ZeroDivisionError: division by zero (broken.py, line 2)"),
        ("typo:workers", "cannot import typo: AttributeError"),
        ("ending:workers", "cannot import ending: SystemExit: 3 (ending.py, line 2)"),
        ("twice:workers", "queue 'jobs' has a worker already (twice.py, line"),
        ("lookalike:holder", "lookalike:holder is of type Holder; it must be mqlite.Workers"),
        ("lookalike:failing", "lookalike:failing is of type Failing; it must be mqlite.Workers"),
        ("tasks:nothing", "tasks has no 'nothing'"),
        ("tasks:number", "tasks:number is of type int; it must be mqlite.Workers"),
        ("tasks:empty", "tasks:empty declares no workers"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_one_line(cli: Run, app: str, complaint: str) -> None:
    result = cli("worker", app)
    assert result.code == 1
    assert complaint in result.err
    assert result.err.count("\n") == 1


def test_coroutines_over_a_broker_need_an_extra(
    cli: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "owner.py").write_text(TASKS.replace("def job", "async def job"))
    monkeypatch.setattr("mqlite.client.session.aiohttp", None)
    result = cli("worker", "owner:workers", "--endpoint", "http://127.0.0.1:1")
    assert result.code == 1
    assert "error: the async client needs the client extra: pip install " in result.err
    assert "Traceback" not in result.err


def test_a_queue_that_is_not_there(cli: Run) -> None:
    result = cli("worker", "tasks:workers")
    assert result.code == 1
    assert "error: queue 'jobs' does not exist" in result.err


def test_a_process_works_until_it_is_told_to_stop(
    start: Callable[..., Any], mq: mqlite.Embedded
) -> None:
    mq.create_queue("jobs", max_delivery_count=1)
    mq.send_batch("jobs", ["quick", "bad", "slow"])
    mq.close()
    process = start("tasks:workers", "--output", "json")
    for line in process.stdout:
        if line == "began slow\n":
            break
    process.send_signal(signal.SIGTERM)
    code, out, err = ended(process)
    assert code == 0, err
    assert out.startswith("ended slow\n")
    counts = json.loads(out.removeprefix("ended slow\n"))
    assert (counts["jobs"]["completed"], counts["jobs"]["abandoned"]) == (2, 1)
    assert "INFO working on jobs" in err
    assert "no good" in err


@pytest.mark.parametrize("impatient", [False, True])
def test_a_handler_that_does_not_end_is_cut_off(
    start: Callable[..., Any], database: Path, mq: mqlite.Embedded, impatient: bool
) -> None:
    mq.create_queue("jobs", keep_leases=True)
    mq.send("jobs", "endless")
    mq.close()
    process = start("tasks:workers")
    assert process.stdout.readline() == "began endless\n"
    process.send_signal(signal.SIGINT)
    if impatient:
        time.sleep(0.05)  # one pending signal of a kind at a time
        process.send_signal(signal.SIGTERM)
    code, out, err = ended(process)
    assert code == 1
    assert out == "jobs: released=1\n"
    assert "error: some handlers did not finish in time" in err
    with mqlite.open(f"file:{database}") as again:
        [message] = again.peek("jobs")
    assert (message.state, message.delivery_count) == ("active", 0)


@pytest.mark.parametrize("own", [False, True])
def test_over_a_broker(
    start: Callable[..., Any], project: Path, mq: mqlite.Embedded, own: bool
) -> None:
    mq.create_queue("jobs")
    mq.send("jobs", "quick")
    with mq.serving(tokens=["mqk_secret"]) as url:
        if own:
            tasks = TASKS.replace(
                "mqlite.Workers()", f"mqlite.connect({url!r}, token='mqk_secret')"
            )
            (project / "owner.py").write_text(tasks)
            process = start("owner:workers")
        else:
            process = start("tasks:workers", MQLITE_ENDPOINT=url, MQLITE_TOKEN="mqk_secret")
        assert process.stdout.readline() == "began quick\n"
        assert process.stdout.readline() == "ended quick\n"
        process.send_signal(signal.SIGTERM)
        code, _, err = ended(process)
    assert code == 0, err
    assert mq.stats("jobs").total == 0
    assert "mqk_secret" not in err


@pytest.mark.parametrize("remote", [False, True])
def test_coroutine_functions_get_an_event_loop(
    start: Callable[..., Any], project: Path, mq: mqlite.Embedded, remote: bool
) -> None:
    (project / "owner.py").write_text(TASKS.replace("def job", "async def job"))
    mq.create_queue("jobs")
    mq.send("jobs", "quick")
    if remote:
        with mq.serving(tokens="off") as url:
            process = start("owner:workers", "--endpoint", url)
            assert process.stdout.readline() == "began quick\n"
            process.send_signal(signal.SIGTERM)
            code, out, err = ended(process)
    else:
        mq.close()
        process = start("owner:workers")
        assert process.stdout.readline() == "began quick\n"
        process.send_signal(signal.SIGTERM)
        code, out, err = ended(process)
    assert code == 0, err
    assert out == "ended quick\njobs: completed=1\n"


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo terminal")
def test_live_counters_on_a_terminal(project: Path, mq: mqlite.Embedded) -> None:
    import pty

    mq.create_queue("jobs")
    mq.send("jobs", "quick")
    mq.close()
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "mqlite", "worker", "tasks:workers"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        os.close(theirs)
        seen = b""
        while b"1 completed" not in seen:
            seen += os.read(ours, 4096)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    os.close(ours)
    assert b"jobs: 0 running, 1 completed" in seen


def test_a_message_that_takes_the_process_down_is_dead_lettered_in_the_end(
    start: Callable[..., Any], database: Path, mq: mqlite.Embedded
) -> None:
    mq.create_queue("jobs", max_delivery_count=2, max_counts="failures")
    mq.send("jobs", "crash")
    mq.close()
    for _ in range(2):
        assert start("tasks:workers").wait(30) == 9
    with mqlite.open(f"file:{database}") as again:
        [letter] = again.peek("jobs")
    assert letter.dead_letter_reason == "MaxDeliveryCountExceeded"

"""Every file of examples/ does what it says."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mqlite
from patience import PATIENCE_S, eventually

EXAMPLES = Path(__file__).parents[1] / "examples"
OUTBOX = "refused: nobody orders nothing\nordered book\nordered pen\norders: 2\n"
TESTED = {
    "embedded.py": "welcome to ada@example.com\nfailed: 'nobody' is not an address\nfor later: 1\n",
    "outbox_sqlite3.py": OUTBOX,
    "outbox_sqlalchemy.py": OUTBOX,
    "outbox_django.py": OUTBOX,
}
ELSEWHERE = {"remote_consumer.py", "typed_worker.py", "fastapi_mount.py", "curl.sh"}

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    processes: list[subprocess.Popen[str]] = []

    def run(*command: str, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command,
            env=os.environ | environment,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        processes.append(process)
        return process

    yield run
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def mq(tmp_path: Path) -> Iterator[mqlite.Embedded]:
    with mqlite.open(tmp_path / "mq.db") as mq:
        for queue in ("orders", "mails"):
            mq.create_queue(queue)
        yield mq


def test_every_example_is_run() -> None:
    found = {path.name for path in EXAMPLES.iterdir() if path.is_file()}
    assert found == TESTED.keys() | ELSEWHERE


@pytest.mark.parametrize("name", TESTED)
def test_programs(name: str) -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == TESTED[name]


def until_said(process: Any, line: str) -> None:
    for said in process.stdout:
        if said == f"{line}\n":
            return
    raise AssertionError(f"it never said {line!r}")


def test_the_remote_consumer(mq: mqlite.Embedded, start: Start) -> None:
    orders = [{"id": 1, "cents": 500}, {"id": 2, "cents": 0}, {"id": 3, "cents": 7, "wait": True}]
    mq.send_batch("orders", [json.dumps(order) for order in orders])
    with mq.serving(tokens=["mqk_x"]) as url:
        script = str(EXAMPLES / "remote_consumer.py")
        process = start(sys.executable, script, MQLITE_ENDPOINT=url, MQLITE_TOKEN="mqk_x")
        until_said(process, "order 1: 500 cents")
        until_said(process, "order 3: 7 cents")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        [letter] = mq.peek("orders")
        assert letter.dead_letter_description == "0 cents"


@pytest.mark.parametrize(
    ("token", "said"),
    [("mqk_x", "queue 'orders' does not exist"), ("mqk_y", "the bearer token is not valid")],
)
def test_the_remote_consumer_ends_with_a_line(token: str, said: str, start: Start) -> None:
    with mqlite.open(":memory:") as mq, mq.serving(tokens=["mqk_x"]) as url:
        script = str(EXAMPLES / "remote_consumer.py")
        process = start(sys.executable, script, MQLITE_ENDPOINT=url, MQLITE_TOKEN=token)
        output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert output.splitlines()[-1] == f"error: {said}"
    assert "Traceback" not in output


def test_the_typed_worker(mq: mqlite.Embedded, start: Start, tmp_path: Path) -> None:
    mq.send_batch("orders", ['{"id": 1, "articles": ["book", "pen"]}', '{"id": 2}'])
    mq.send("mails", '{"to": "ada"}')
    mq.close()
    command = [sys.executable, "-m", "mqlite", "worker", "examples.typed_worker:workers"]
    process = start(*command, MQLITE_DB=str(tmp_path / "mq.db"), PYTHONPATH=str(EXAMPLES.parent))
    assert process.stdout is not None
    said = ""  # by several threads, so that a line may hold what two of them say
    while not ("order 1: book, pen" in said and "mail 3 to ada" in said):
        line = process.stdout.readline()
        assert line, said
        said += line
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0
    with mqlite.open(tmp_path / "mq.db") as again:
        [letter] = again.peek("orders")
    assert letter.dead_letter_reason == "InvalidPayload"
    assert "`articles`" in letter.dead_letter_description


def fetched(url: str, data: bytes | None = None, token: str = "") -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, data, headers)
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return json.load(answer)


def test_the_fastapi_mount(start: Start, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = start(
        *(sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLES), "--port", str(port)),
        "fastapi_mount:app",
        MQLITE_DB=str(tmp_path / "shop.db"),
        QUEUE_TOKENS="mqk_shop",
    )
    url = f"http://127.0.0.1:{port}"

    def orders() -> list[str] | None:
        try:
            got: list[str] = fetched(f"{url}/orders")
        except urllib.error.URLError:
            return None
        return got

    eventually(lambda: orders() == [])
    assert fetched(f"{url}/orders?article=book", b"") == {"seq_number": 1}
    eventually(lambda: orders() == ["book"])
    stats = fetched(f"{url}/queue/mqlite.v1.QueueService/Stats", b'{"queue":"orders"}', "mqk_shop")
    assert stats["queue"] == "orders"
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) in (0, -signal.SIGTERM)


@pytest.mark.skipif(
    shutil.which("curl") is None, reason="curl is not here; get it with: apt-get install curl"
)
def test_curl(mq: mqlite.Embedded) -> None:
    with mq.serving(tokens=["mqk_x"]) as url:
        environment = os.environ | {"MQLITE_ENDPOINT": url, "MQLITE_TOKEN": "mqk_x"}
        command = ["sh", str(EXAMPLES / "curl.sh")]
        ran = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S
        )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "\nhello from curl\n" in ran.stdout
    assert mq.stats("curl").total == 0

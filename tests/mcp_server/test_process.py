"""`mqlite mcp` as a host runs it: a process, spoken to over its standard streams."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import INVALID_PARAMS, METHOD_NOT_FOUND

from mqlite import cli
from mqlite.clock import ManualClock
from mqlite.embedded import Embedded
from mqlite.mcp.broker import endpoint_setting
from patience import PATIENCE_S, eventually

from .support import EXAMPLES, TOKEN, Agent, result

COMMAND = [sys.executable, "-m", "mqlite", "mcp"]
EXIT_SECONDS = 25
"""Shorter than the server waits for a broker's answer: it must not wait for that."""
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MQLITE_")]:
        monkeypatch.delenv(name)


class Process:
    """The server's process, spoken to line by line."""

    def __init__(self, popen: subprocess.Popen[str]) -> None:
        self.popen = popen

    def write(self, text: str) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(text)
        self.popen.stdin.flush()

    def say(self, **message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")

    def listen(self) -> Any:
        assert self.popen.stdout is not None
        return json.loads(self.popen.stdout.readline())

    def greet(self) -> Any:
        self.say(id=0, method="initialize", params=INITIALIZE)
        answer = self.listen()
        self.say(method="notifications/initialized")
        return answer["result"]

    def end(self) -> tuple[str, str]:
        """Close the input; what came out until the process was gone."""
        return self.popen.communicate(timeout=EXIT_SECONDS)


@contextmanager
def running(url: str) -> Iterator[Process]:
    settings = os.environ | {"MQLITE_ENDPOINT": url, "MQLITE_TOKEN": TOKEN}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        COMMAND, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=settings
    ) as popen:
        try:
            yield Process(popen)
        finally:
            popen.kill()


def test_a_session(mq: Embedded, url: str, tmp_path: Path) -> None:
    settings = {"MQLITE_ENDPOINT": f" {url}/ ", "MQLITE_TOKEN": TOKEN}
    server = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=settings)

    async def session() -> list[str]:
        said: list[str] = []
        async with Client(stdio_client(server, errlog=stderr)) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == list(EXAMPLES)

            async def call(tool: str, **arguments: Any) -> Any:
                answer = result(await client.call_tool(tool, arguments))
                said.append(answer.text)
                return answer.text if answer.failed else answer.json

            mq.create_queue("q", lock_duration="1m")
            assert await call("create_queue", name="q") == {}
            assert await call("send", queue="q", body="größer") == {"seq_numbers": [1]}
            [message] = (await call("receive", queue="q", wait_time_ms=1000))["messages"]
            lease = {"queue": "q", "seq_number": 1, "lock_token": message["lock_token"]}
            assert await call("complete", **lease) == {"ok": True}
            assert (await call("renew", **lease)).startswith("error: lock_lost: HTTP status 409")
            assert "queue is missing" in await call("stats")
            assert "unknown argument 'maximum'" in await call("purge", queue="q", maximum=7)
            assert "seq_number must be" in await call("complete", **{**lease, "seq_number": "1"})
        return said

    with (tmp_path / "stderr").open("w+") as stderr:
        said = anyio.run(session)
        stderr.seek(0)
        assert stderr.read() == ""
    assert TOKEN not in "".join(said)
    assert mq.stats("q").total == 0


def test_the_end_of_input_ends_it(url: str) -> None:
    with running(url) as process:
        assert process.greet()["serverInfo"]["name"] == "mqlite-mcp"
        assert process.end() == ("", "")
        assert process.popen.returncode == 0


def test_no_input_at_all(url: str) -> None:
    with running(url) as process:
        assert process.end() == ("", "")
        assert process.popen.returncode == 0


def test_the_end_of_input_ends_a_long_poll(mq: Embedded, clock: ManualClock, url: str) -> None:
    mq.create_queue("q")
    poll = {"name": "receive", "arguments": {"queue": "q", "wait_time_ms": 20_000}}
    with running(url) as process:
        process.greet()
        process.say(id=1, method="tools/call", params=poll)
        eventually(lambda: clock.waiting == 1)
        _, errors = process.end()
        assert (process.popen.returncode, errors) == (0, "")
    eventually(lambda: clock.waiting == 0)
    mq.send("q", "x")
    [message] = mq.receive("q")
    assert message.delivery_count == 1


def test_many_long_polls_do_not_silence_the_protocol(mq: Embedded, url: str) -> None:
    mq.create_queue("q")
    poll = {"name": "receive", "arguments": {"queue": "q", "wait_time_ms": 20_000}}
    with running(url) as process:
        process.greet()
        for number in range(50):
            process.say(id=number, method="tools/call", params=poll)
        process.say(id="still there", method="ping")
        assert process.listen()["id"] == "still there"
        process.end()
        assert process.popen.returncode == 0


@pytest.mark.skipif(os.name == "nt", reason="a signal of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_at_once(url: str, number: signal.Signals) -> None:
    with running(url) as process:
        process.greet()
        process.popen.send_signal(number)
        assert process.popen.wait(PATIENCE_S) == -number


def test_what_cannot_be_understood_is_refused_and_not_logged(url: str) -> None:
    with running(url) as process:
        process.greet()
        process.write("no JSON, and a secret\n\n[1]\n")
        process.say(id=1, method="tools/call", params={"name": 7, "arguments": "a secret"})
        process.say(id=2, method="a secret", params={"a": "secret"})
        process.say(id=3, method="tools/call", params={"name": "stats", "arguments": ["secret"]})
        answers = [process.listen() for _ in range(3)]
        assert {answer["id"]: answer["error"]["code"] for answer in answers} == {
            1: INVALID_PARAMS,
            2: METHOD_NOT_FOUND,
            3: INVALID_PARAMS,
        }
        out, errors = process.end()
        assert out == ""
        assert "secret" not in errors
        assert process.popen.returncode == 0


@pytest.mark.parametrize(
    ("setting", "endpoint"),
    [
        ("", "http://127.0.0.1:6754"),
        (" ", "http://127.0.0.1:6754"),
        (" https://mq.example.com/prefix// ", "https://mq.example.com/prefix"),
        ("HTTP://host:1", "HTTP://host:1"),
    ],
)
def test_the_endpoint(setting: str, endpoint: str) -> None:
    assert endpoint_setting(setting) == endpoint


@pytest.mark.parametrize(
    "endpoint",
    [
        "mqlite://mqk_secret@host:6754",
        "mqk_secret@host:6754",
        "ftp://host",
        "localhost:6754",
        "http://",
        "http://mqk_secret@host:6754",
        "http://host:port",
        "http://[::1",
        "https://host/?query",
    ],
)
def test_an_endpoint_that_cannot_be_used(
    endpoint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MQLITE_ENDPOINT", endpoint)
    assert cli.main(["mcp"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert "mqk_secret" not in err


@pytest.mark.parametrize("token", ["mqk_secret\n", "mqk secret", " ", "mqk_s\u00e9cret"])
def test_a_token_that_cannot_be_sent(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("MQLITE_TOKEN", token)
    ended = subprocess.run(COMMAND, input="", capture_output=True, text=True, timeout=EXIT_SECONDS)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "error: MQLITE_TOKEN: a token is printable ASCII without spaces\n"


def test_the_command_takes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["mcp", "http://127.0.0.1:6754"]) == 1
    assert "mcp takes no arguments" in capsys.readouterr().err


@pytest.mark.parametrize("absent", ["mcp", "mcp.server.mcpserver"])
def test_without_the_extra_or_with_an_older_sdk(
    absent: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith(("mcp.", "mqlite.mcp."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, absent, None)
    assert cli.main(["mcp"]) == 1
    _, err = capsys.readouterr()
    assert "pip install '.[mcp]' in a clone of " in err
    assert absent in err
    assert err.count("\n") == 1


def test_the_program_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [entry] = entry_points(group="console_scripts", name="mqlite-mcp")
    monkeypatch.setattr("sys.argv", ["mqlite-mcp", "--help"])
    assert entry.load()() == 0
    assert "MQLITE_ENDPOINT" in capsys.readouterr().err


def test_other_commands_do_not_pay_for_it() -> None:
    program = (
        "import sys; from mqlite.cli import main; main(['version']);"
        " print(sorted({'mcp', 'anyio', 'pydantic'} & sys.modules.keys()))"
    )
    printed = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert printed.splitlines()[-1] == "[]"


def test_the_credential_is_not_shown() -> None:
    broker = Agent("http://127.0.0.1:6754").broker
    assert TOKEN not in repr(broker) + repr(vars(broker))

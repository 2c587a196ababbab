"""`mqlite serve`: its settings, and the process."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqlite.cli import environment, serve
from mqlite.cli.streams import CommandError
from mqlite.client import Client

from .conftest import Run


@pytest.mark.parametrize(
    ("flag", "setting", "address"),
    [
        (None, None, ":6754"),
        (None, " 127.0.0.1:1 ", "127.0.0.1:1"),
        (" :2 ", "127.0.0.1:1", ":2"),
        (":2", " ", ":2"),
    ],
)
def test_the_listen_address(flag: str | None, setting: str | None, address: str) -> None:
    assert serve.listen_address(flag, setting) == address


@pytest.mark.parametrize(
    ("flag", "setting", "named"), [(" ", ":1", "--addr"), (None, "", "MQLITE_ADDR")]
)
def test_a_blank_address_is_refused(flag: str | None, setting: str | None, named: str) -> None:
    with pytest.raises(CommandError, match=f"{named} is blank"):
        serve.listen_address(flag, setting)


@pytest.mark.parametrize("setting", [None, "", "  "])
def test_a_token_is_made_where_none_is_set(setting: str | None) -> None:
    one, other = serve.broker_auth(setting), serve.broker_auth(setting)
    assert re.fullmatch(r"mqk_[0-9a-f]{64}", one.generated)
    assert one.tokens == [one.generated]
    assert one.generated != other.generated
    assert one.generated not in repr(one)


def test_tokens_that_are_set_but_empty_are_warned_about(
    capsys: pytest.CaptureFixture[str],
) -> None:
    serve.broker_auth("")
    assert capsys.readouterr().err.startswith("warning: MQLITE_TOKENS is set, but empty")
    serve.broker_auth(None)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["MQLITE_TOKENS", "MQLITE_MONITOR_TOKENS"])
def test_a_token_that_no_header_can_carry_is_told_by_its_setting(
    cli: Run, database: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("MQLITE_TOKENS", "fine")
    monkeypatch.setenv(name, "secret one")
    refused = f"error: {name}: a token is printable ASCII without spaces\n"
    assert cli("serve", "--addr", "127.0.0.1:0") == (1, "", refused)
    assert not database.exists()


def test_configured_tokens() -> None:
    assert serve.broker_auth(" a, ,b ") == (["a", "b"], "")
    assert serve.broker_auth(" OFF ") == ("off", "")
    with pytest.raises(CommandError, match="MQLITE_TOKENS holds no token"):
        serve.broker_auth(" , ")
    with pytest.raises(CommandError, match="MQLITE_TOKENS is either 'off' or a list"):
        serve.broker_auth("mqk_a,Off")


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("127.0.0.1:6754", True),
        ("127.9.9.9:6754", True),
        ("localhost:6754", True),
        ("[::1]:6754", True),
        (":6754", False),
        ("0.0.0.0:6754", False),
        ("[::]:6754", False),
        ("example.com:6754", False),
    ],
)
def test_which_addresses_only_this_machine_reaches(address: str, loopback: bool) -> None:
    assert serve.is_loopback(address) is loopback


def test_without_auth_a_remote_bind_is_refused_before_the_database_is_opened(
    cli: Run, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MQLITE_TOKENS", "off")
    result = cli("serve", "--addr", "0.0.0.0:6788")
    assert result.code == 1
    assert result.err.startswith("error: refusing to serve on 0.0.0.0:6788 with MQLITE_TOKENS=off")
    assert "Use --addr 127.0.0.1:6788" in result.err
    assert not database.exists()


@pytest.mark.parametrize(
    ("words", "environment", "named"),
    [
        (
            [],
            {"MQLITE_METRICS": "Maybe"},
            "MQLITE_METRICS must be on, true, 1, off, false or 0, got 'Maybe'",
        ),
        (["--metrics"], {"MQLITE_TOKENS": "off"}, "--metrics needs authentication"),
        ([], {"MQLITE_METRICS": "On", "MQLITE_TOKENS": "off"}, "MQLITE_METRICS needs"),
        ([], {"MQLITE_UI": "on"}, "MQLITE_UI"),
        ([], {"MQLITE_DIAGNOSTIC_LOG": "/no/x"}, "MQLITE_DIAGNOSTIC_LOG: '/no/x' cannot be the"),
        (["--diagnostic-log", "/"], {}, "--diagnostic-log: '/' cannot be the diagnostic log: / is"),
    ],
)
def test_what_cannot_be_had_is_never_ignored(
    cli: Run,
    database: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    environment: dict[str, str],
    named: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    result = cli("serve", "--addr", "127.0.0.1:0", *words)
    assert result.code == 1
    assert result.err.startswith(f"error: {named}")
    assert not database.exists()


@pytest.mark.parametrize("part", ["", "-wal", "-shm", "-journal", ".lock"])
def test_a_diagnostic_log_in_the_place_of_the_database_is_refused(
    cli: Run, database: Path, part: str
) -> None:
    path = f"{database}{part}"
    result = cli("serve", "--addr", "127.0.0.1:0", "--diagnostic-log", path)
    assert result.code == 1
    assert result.err == (
        f"error: --diagnostic-log: {path!r} cannot be the diagnostic log: {path} is a file of the"
        f" database {database}; give a new or empty file, or an earlier diagnostic log\n"
    )
    assert list(database.parent.iterdir()) == []


def test_metrics_are_served_where_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    auth = serve.Auth(["token"])
    for value in ("", " ", "off", "OFF", "false", "0"):
        monkeypatch.setenv("MQLITE_METRICS", value)
        assert not serve.metrics_setting(None, auth)
        assert serve.metrics_setting(True, auth)
    for value in ("on", "True", "1"):
        monkeypatch.setenv("MQLITE_METRICS", value)
        assert serve.metrics_setting(None, auth)
        assert not serve.metrics_setting(False, auth)


def test_a_remote_database_is_refused_by_name(
    cli: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MQLITE_DB", "libsql://secret-db.turso.io")
    for command in ("list", "serve"):
        result = cli(command)
        assert result.code == 1
        assert "libsql" in result.err
    assert list(tmp_path.iterdir()) == []


def test_retention_of_dead_letters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert environment.retention() == ("14d", 1_000_000, None)
    monkeypatch.setenv("MQLITE_DLQ_MAX_AGE", "36h")
    monkeypatch.setenv("MQLITE_DLQ_MAX_COUNT", "0")
    monkeypatch.setenv("MQLITE_DLQ_MAX_BYTES", "4096")
    assert environment.retention() == ("36h", None, 4096)
    monkeypatch.setenv("MQLITE_DLQ_MAX_AGE", "-1h")
    assert environment.retention().max_age is None
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("MQLITE_DLQ_MAX_AGE", "soon")
    monkeypatch.setenv("MQLITE_DLQ_MAX_COUNT", "many")
    assert environment.retention() == ("14d", 1_000_000, 4096)
    warned = capsys.readouterr().err.splitlines()
    assert [line.split()[1] for line in warned] == ["MQLITE_DLQ_MAX_AGE", "MQLITE_DLQ_MAX_COUNT"]
    assert "it must be a whole number, got 'many'" in warned[1]
    monkeypatch.setenv("MQLITE_DLQ_RETENTION", "OFF")
    assert environment.retention() == (None, None, None)


@contextmanager
def broker(*args: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A broker process, and what it printed until it was ready."""
    command = [sys.executable, "-m", "mqlite", "serve", "--addr", "127.0.0.1:0", *args]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    printed: list[str] = []
    try:
        for line in process.stderr:
            printed.append(line)
            if line.startswith("ready: "):
                break
        yield process, printed
    finally:
        process.kill()
        process.communicate()


def url_of(printed: list[str]) -> str:
    return printed[-1].removeprefix("ready: ").strip()


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_the_broker_says_what_to_type_next_and_stops_on_a_signal(
    signal_number: signal.Signals,
) -> None:
    with broker() as (process, printed):
        url = url_of(printed)
        assert process.stderr is not None
        text = "".join(process.stderr.readline() for _ in range(7))
        token = text.partition("MQLITE_TOKEN=")[2].split()[0]
        assert f"export MQLITE_ENDPOINT={url} MQLITE_TOKEN={token}\n" in text

        typed = text.partition("In another terminal:")[2]
        outcome = subprocess.run(["bash"], input=typed, capture_output=True, text=True, timeout=60)
        assert outcome.stderr == ""
        created, sent, received = outcome.stdout.splitlines()
        assert created == "ok: action=create-queue queue=jobs"
        assert sent == "ok: queue=jobs seq=1"
        assert received == 'seq=1 deliveries=1 body="hello"'

        process.send_signal(signal_number)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0
        assert out == ""
        assert "".join([*printed, text, err]).count(token) == 1
        assert "Traceback" not in err


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_the_log_tells_of_the_start_and_of_the_stop(stop: signal.Signals) -> None:
    with broker() as (process, printed):
        address = url_of(printed).removeprefix("http://")
        process.send_signal(stop)
        _, err = process.communicate(timeout=60)
    lines = "".join([*printed, err]).splitlines()
    told = [line for line in lines if re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} ", line)]
    assert [line[24:] for line in told] == [
        f"INFO    broker started on {address}",
        f"INFO    broker stopping: {stop.name}",
        "INFO    broker stopped",
        "INFO    database closed",
    ]
    assert lines[0] == told[0]
    assert lines[-3:] == told[1:]


def test_a_configured_token_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQLITE_TOKENS", "configured-token")
    with broker() as (process, printed):
        with Client(url_of(printed), token="configured-token") as client:
            assert client.broker_status().auth is True
        process.terminate()
        _, err = process.communicate(timeout=60)
        assert "configured-token" not in "".join(printed) + err
        assert "In another terminal" not in err


def test_a_broker_without_auth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQLITE_TOKENS", "off")
    with broker() as (_, printed):
        assert "auth: off, CORS: off\n" in printed
        with Client(url_of(printed)) as client:
            assert client.broker_status().auth is False


def test_an_address_that_is_in_use(cli: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = cli("serve", "--addr", address)
    assert result.code == 1
    assert result.err == (
        f"error: {address} is in use; is another broker running? Choose another with --addr\n"
    )


def test_an_address_that_is_none(cli: Run) -> None:
    result = cli("serve", "--addr", "nonsense")
    assert result.code == 1
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1

"""Which store a command talks to, and with which credential."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from client import stub
from mqlite.cli.connect import choose_target

from .conftest import Run

HOME = "http://127.0.0.1:6754"
OTHER = "http://127.0.0.1:6755"


@pytest.fixture
def two_brokers() -> Iterator[tuple[stub.StubBroker, stub.StubBroker]]:
    with stub.serving(stub.empty) as one, stub.serving(stub.empty) as other:
        yield one, other


def test_without_an_endpoint_commands_are_embedded(cli: Run, database: Path) -> None:
    assert cli("create-queue", "orders").code == 0
    assert database.exists()


def test_the_default_database_is_in_the_working_directory(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MQLITE_DB")
    monkeypatch.chdir(tmp_path)
    assert cli("list").code == 0
    assert (tmp_path / "mq.db").exists()


def test_the_environment_names_a_broker(
    cli: Run,
    two_brokers: tuple[stub.StubBroker, stub.StubBroker],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home, _ = two_brokers
    monkeypatch.setenv("MQLITE_ENDPOINT", home.url)
    monkeypatch.setenv("MQLITE_TOKEN", "ambient")
    assert cli("list") == (0, "(no queues)\n", "")
    assert home.requests[0].token == "Bearer ambient"


def test_an_empty_endpoint_flag_forces_embedded(
    cli: Run, monkeypatch: pytest.MonkeyPatch, database: Path
) -> None:
    monkeypatch.setenv("MQLITE_ENDPOINT", HOME)
    assert cli("list", "--endpoint=").code == 0
    assert database.exists()


@pytest.mark.parametrize(
    ("endpoint", "token", "sent"),
    [
        (None, None, "ambient"),
        (None, "given", "given"),
        (f"{HOME}/", None, "ambient"),
        ("mqlite://127.0.0.1", None, "ambient"),
        (OTHER, None, ""),
        (OTHER, "given", "given"),
        (HOME, "", ""),
    ],
)
def test_the_token_a_command_sends(
    endpoint: str | None, token: str | None, sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MQLITE_ENDPOINT", HOME)
    monkeypatch.setenv("MQLITE_TOKEN", "ambient")
    assert choose_target(endpoint, token).token == sent


def test_an_empty_token_also_drops_the_one_in_the_endpoint() -> None:
    assert choose_target("mqlite://secret@h", "").endpoint == "mqlite://h"


def test_a_target_does_not_show_its_credentials() -> None:
    shown = repr(choose_target("mqlite://secret@h", "hidden"))
    assert "secret" not in shown
    assert "hidden" not in shown


def test_the_ambient_token_is_withheld_from_another_broker(
    process: Callable[..., subprocess.CompletedProcess[str]],
    two_brokers: tuple[stub.StubBroker, stub.StubBroker],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home, other = two_brokers
    monkeypatch.setenv("MQLITE_ENDPOINT", home.url)
    monkeypatch.setenv("MQLITE_TOKEN", "ambient")

    result = process("list", "--endpoint", other.url)
    assert (result.returncode, result.stdout) == (0, "(no queues)\n")
    assert result.stderr.startswith("warning: MQLITE_TOKEN is not sent to this endpoint")
    assert [request.token for request in other.requests] == [None]

    assert process("list").returncode == 0
    assert [request.token for request in home.requests] == ["Bearer ambient"]


def test_an_empty_token_sends_no_credential(
    cli: Run,
    two_brokers: tuple[stub.StubBroker, stub.StubBroker],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home, _ = two_brokers
    monkeypatch.setenv("MQLITE_TOKEN", "ambient")
    dsn = home.url.replace("http://", "mqlite://written@")
    assert cli("list", "--endpoint", dsn, "--token=").code == 0
    assert cli("list", "--endpoint", dsn).code == 0
    assert [request.token for request in home.requests] == [None, "Bearer written"]


def test_a_broker_that_is_not_there_is_one_line(cli: Run) -> None:
    with stub.serving(stub.empty) as gone:
        url = gone.url
    result = cli("list", "--endpoint", url)
    assert result == (
        1,
        "",
        f"error: cannot reach the broker at {url}: Connection refused\n",
    )


@pytest.mark.parametrize("endpoint", ["127.0.0.1:6754", "ftp://h", "http://", "mqlite://h:x"])
def test_an_endpoint_that_cannot_be_read(cli: Run, endpoint: str) -> None:
    result = cli("list", "--endpoint", endpoint)
    assert result.code == 1
    assert result.err.startswith(f"error: invalid endpoint '{endpoint}'")


@pytest.mark.parametrize("level", ["NORMAL", "full", " off ", "EXTRA", ""])
def test_every_durability_level_is_accepted(
    cli: Run, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MQLITE_SYNC", level)
    assert cli("list").code == 0


def test_an_unknown_durability_level_is_refused(
    cli: Run, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MQLITE_SYNC", "NORMALL")
    result = cli("list")
    assert result.err == "error: MQLITE_SYNC must be NORMAL, FULL, OFF or EXTRA, got 'NORMALL'\n"
    assert not database.exists()


@pytest.mark.parametrize("size", ["many", "0", "-5"])
def test_a_bad_message_limit_is_warned_about(
    cli: Run, size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MQLITE_MAX_MESSAGE_BYTES", size)
    result = cli("list")
    assert result.code == 0
    assert result.err.startswith("warning: MQLITE_MAX_MESSAGE_BYTES is ignored")


def test_the_message_limit_holds_for_embedded_commands(
    cli: Run, ok: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ok("create-queue", "q")
    monkeypatch.setenv("MQLITE_MAX_MESSAGE_BYTES", "4")
    assert cli("send", "q", "four").code == 0
    assert cli("send", "q", "five!").code == 1


def test_no_warning_where_the_endpoint_has_a_token_of_its_own(
    cli: Run,
    two_brokers: tuple[stub.StubBroker, stub.StubBroker],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home, other = two_brokers
    monkeypatch.setenv("MQLITE_ENDPOINT", home.url)
    monkeypatch.setenv("MQLITE_TOKEN", "ambient")
    result = cli("list", "--endpoint", other.url.replace("http://", "mqlite://written@"))
    assert result == (0, "(no queues)\n", "")
    assert [request.token for request in other.requests] == ["Bearer written"]


def test_a_token_that_cannot_be_sent_is_told_by_where_it_came_from(
    cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = ": a token is printable ASCII without spaces\n"
    assert cli("list", "--endpoint", HOME, "--token", "a b").err == f"error: --token{refused}"
    monkeypatch.setenv("MQLITE_ENDPOINT", HOME)
    monkeypatch.setenv("MQLITE_TOKEN", "a b")
    assert cli("list").err == f"error: MQLITE_TOKEN{refused}"

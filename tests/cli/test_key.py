"""`mqlite key`: access keys, on a file and on a running broker."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mqlite
from client import stub
from mqlite.cli import serve, streams
from mqlite.cli.streams import CommandError, OutputLost

from .conftest import Run

ID = "0123456789abcdef" * 2
ADMINISTRATOR = "mqk_administrator"
TOKEN = re.compile("mqk_[0-9a-f]{64}")

Ok = Callable[..., str]


@pytest.fixture(params=["embedded", "client"])
def mode(
    request: pytest.FixtureRequest, database: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    if request.param == "embedded":
        yield request.param
        return
    with mqlite.open(database) as mq, mq.serving(tokens=[ADMINISTRATOR]) as url:
        monkeypatch.setenv("MQLITE_ENDPOINT", url)
        monkeypatch.setenv("MQLITE_TOKEN", ADMINISTRATOR)
        yield request.param


def as_json(ok: Ok, *words: str) -> Any:
    return json.loads(ok("key", *words, "--output", "json"))


@pytest.mark.usefixtures("mode")
def test_a_key_is_made_listed_and_revoked(ok: Ok) -> None:
    made = as_json(ok, "create", "--name", "worker", "--permissions", "listen,send")
    assert list(made) == ["key", "token"]
    assert TOKEN.fullmatch(made["token"])
    key = made["key"]
    assert (key["name"], key["permissions"]) == ("worker", ["send", "listen"])
    assert as_json(ok, "list") == {"keys": [key]}
    for _ in range(2):
        assert ok("key", "revoke", "--id", key["id"]) == f"ok: action=key-revoke id={key['id']}\n"
    assert as_json(ok, "list")["keys"][0]["revoked_at_ms"] > 0


@pytest.mark.usefixtures("mode")
def test_the_secret_is_shown_once_and_on_standard_output(cli: Run) -> None:
    made = cli("key", "create", "--id", ID, "--name", "a b", "--permissions", "manage")
    assert re.fullmatch(
        rf"ok: action=key-create id={ID} name=\"a b\" permissions=manage expires=never"
        rf" token={TOKEN.pattern}\n",
        made.out,
    )
    assert made.err == "keep the token safe: it cannot be shown again\n"
    [token] = TOKEN.findall(made.out)
    again = cli("key", "create", "--id", ID, "--name", "n", "--permissions", "send")
    assert again.code == 1
    assert "exists" in again.err
    for result in (again, cli("key", "list"), cli("key", "list", "--output", "json")):
        assert token not in result.out + result.err
        assert "digest" not in result.out


@pytest.mark.usefixtures("mode")
def test_the_list_as_text_ends_with_the_command_that_goes_on(ok: Ok) -> None:
    assert ok("key", "list") == "(no keys)\n"
    for number in range(3):
        id_ = f"{number:032x}"
        ok("key", "create", "--id", id_, "--name", "a\nb", "--permissions", "send")
    ok("key", "revoke", "--id", "0" * 32)
    first, second, more = ok("key", "list", "--limit", "2").splitlines()
    assert re.fullmatch(
        rf"{'0' * 32} permissions=send {{8}}created=\d{{4}}-\S+Z expires=never"
        r" revoked=\d{4}-\S+Z name=\"a\\nb\"",
        first,
    )
    assert "revoked=never" in second
    command = more.removeprefix("more: mqlite ")
    assert command == f"key list --sort id_asc --limit 2 --after-id {1:032x}"
    assert ok(*command.split()).startswith(f"{2:032x} ")
    newest = ok("key", "list", "--sort", "created_desc", "--limit", "1").splitlines()
    assert newest[1].startswith("more: mqlite key list --sort created_desc --limit 1 --after-id ")


@pytest.mark.usefixtures("mode")
def test_an_expiry_is_kept_to_the_millisecond(ok: Ok) -> None:
    words = ("--name", "n", "--permissions", "send", "--expires-at-ms")
    for ms in (4_000_000_000_001, 253_402_300_799_999):
        assert as_json(ok, "create", *words, str(ms))["key"]["expires_at_ms"] == ms
    assert as_json(ok, "create", *words, "0")["key"]["expires_at_ms"] == 0
    assert "expires=9999-12-31T23:59:59Z" in ok("key", "list")


@pytest.mark.usefixtures("mode")
def test_an_expiry_is_a_time_or_a_duration_from_now(ok: Ok) -> None:
    words = ("create", "--name", "n", "--permissions", "send", "--expires")
    assert as_json(ok, *words, "2100-01-02T03:04:05.678+01:00")["key"]["expires_at_ms"] == (
        4_102_538_645_678
    )
    before = time.time_ns() // 1_000_000
    key = as_json(ok, *words, "1d12h")["key"]
    assert before <= key["expires_at_ms"] - 36 * 3600 * 1000 <= key["created_at_ms"]


def test_an_expiry_beyond_all_dates_is_listed(mq: mqlite.Embedded, ok: Ok) -> None:
    mq.create_key(ID, name="n", permissions=["send"], expires_at=10**15)
    mq.close()
    assert "expires=9999-12-31T23:59:59Z" in ok("key", "list")


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--name", "n", "--permissions", "monitor"], "permissions must be of send, listen"),
        (["--name", "n", "--permissions", ""], "permissions must be of send, listen"),
        (["--name", "n", "--permissions", "send,"], "permissions must be of send, listen"),
        (["--name", "", "--permissions", "send"], "name must be"),
        (["--name", "n", "--permissions", "send", "--id", ""], "id must be 32"),
        (["--name", "n", "--permissions", "send", "--id", "X"], "id must be 32"),
        (["--name", "n", "--permissions", "send", "--expires-at-ms", "1"], "expires_at_ms"),
        (["--name", "n", "--permissions", "send", "--expires-at-ms", "-1"], "--expires-at-ms"),
        (
            ["--name", "n", "--permissions", "send", "--expires-at-ms", "4000000000"],
            "it counts milliseconds, not seconds",
        ),
        (
            ["--name", "n", "--permissions", "send", "--expires", "90"],
            "--expires must be an RFC 3339 time or a duration such as 30m, got '90'",
        ),
        (
            ["--name", "n", "--permissions", "send", "--expires", "2020-01-01T00:00:00Z"],
            "--expires must be in the future",
        ),
        (
            ["--name", "n", "--permissions", "send", "--expires", "1d", "--expires-at-ms", "0"],
            "--expires and --expires-at-ms exclude each other",
        ),
    ],
)
def test_a_key_that_cannot_be(cli: Run, words: list[str], named: str) -> None:
    result = cli("key", "create", *words)
    assert (result.code, result.out) == (1, "")
    assert named in result.err
    assert "was to be" not in result.err
    assert cli("key", "list").out == "(no keys)\n"


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (["list", "--limit", "0"], 1, "--limit must be 1 to 1000"),
        (["list", "--limit", "1001"], 1, "--limit must be 1 to 1000"),
        (["list", "--sort", "name"], 1, "--sort must be id_asc or created_desc"),
        (["list", "--after-id", "X"], 1, "after_id must be 32"),
        (["list", "--after-id", ID, "--sort", "created_desc"], 1, "after_id must be the id"),
        (["revoke", "--id", ID], 1, f"key {ID} does not exist"),
        (["revoke"], 2, "--id"),
        (["create", "--name", "n"], 2, "--permissions"),
        (["create", "--permissions", "send"], 2, "--name"),
        ([], 2, "'key' needs to be one of key create, key list, key revoke"),
        (["rotate"], 2, "'key' needs to be one of key create, key list, key revoke"),
        (["create", "x", "--name", "n", "--permissions", "send"], 1, "takes no arguments"),
    ],
)
def test_misuse(cli: Run, words: list[str], code: int, named: str) -> None:
    result = cli("key", *words)
    assert result.code == code
    assert named in result.err


def test_an_application_key_cannot_manage_keys(
    mq: mqlite.Embedded, cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = mq.create_key(ID, name="n", permissions=["send", "listen"])
    with mq.serving(tokens=[ADMINISTRATOR]) as url:
        monkeypatch.setenv("MQLITE_ENDPOINT", url)
        for token, problem in ((made.token, "permission manage"), ("mqk_no", "not valid")):
            monkeypatch.setenv("MQLITE_TOKEN", token)
            result = cli("key", "list")
            assert result.code == 1
            assert problem in result.err
            assert token not in result.err


def test_no_key_is_made_for_an_output_that_goes_nowhere(
    cli: Run, mq: mqlite.Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    mq.close()
    with monkeypatch.context() as closed:
        closed.setattr(streams, "deliverable", lambda: False)
        result = cli("key", "create", "--name", "n", "--permissions", "send")
    assert result.code == 1
    assert "no key is made" in result.err
    assert cli("key", "list").out == "(no keys)\n"


def test_a_token_that_could_not_be_printed_is_told_by_its_id(
    cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost() -> None:
        raise OutputLost("cannot write to standard output: Broken pipe")

    with monkeypatch.context() as broken:
        broken.setattr(streams, "flush", lost)
        broken.setattr(streams, "discard_output", lambda: None)
        words = ("--id", ID, "--name", "n", "--permissions", "send")
        result = cli("key", "create", *words)
    assert result.code == 1
    assert f"Broken pipe: the token is lost, so revoke the key {ID}" in result.err
    assert cli("key", "revoke", "--id", ID).code == 0


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ((503, {"code": "outcome_unknown", "message": "who knows"}), "who knows"),
        ((200, b""), "no mqlite broker"),
        ((500, {"code": "internal", "message": "a bug"}), "a bug"),
    ],
)
def test_a_key_that_may_exist_is_asked_for_once_and_told_by_its_id(
    cli: Run, answer: stub.Answer, problem: str
) -> None:
    with stub.serving(lambda method, body: answer) as broker:
        words = ("--name", "n", "--permissions", "send", "--endpoint", broker.url)
        result = cli("key", "create", *words)
    [request] = broker.requests
    assert result.code == 1
    assert problem in result.err
    assert f"the id of the key was to be {request.body['id']}" in result.err


@pytest.mark.parametrize(
    "answer",
    [
        (404, stub.NO_PATH),
        (401, {"code": "unauthenticated", "message": "who are you"}),
        (403, {"code": "permission_denied", "message": "not you"}),
        (503, {"code": "unavailable", "message": "nothing was written"}),
    ],
)
def test_a_key_that_was_refused_is_not_to_be_looked_for(cli: Run, answer: stub.Answer) -> None:
    with stub.serving(lambda method, body: answer) as broker:
        words = ("--name", "n", "--permissions", "send", "--endpoint", broker.url)
        result = cli("key", "create", *words)
    assert result.code == 1
    assert "was to be" not in result.err


def test_a_key_that_may_exist_after_ctrl_c_is_told_by_its_id(
    cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(mqlite.Embedded, "create_key", interrupted)
    result = cli("key", "create", "--id", ID, "--name", "n", "--permissions", "send")
    told = f"warning: the id of the key was to be {ID}\nerror: interrupted\n"
    assert result == (1, "", told)


def test_where_authentication_is_off_there_is_no_permission_to_ask_for(
    cli: Run, mq: mqlite.Embedded
) -> None:
    refused = "error: access keys cannot be managed while authentication is off\n"
    with mq.serving(tokens="off") as url:
        for words in (
            ("create", "--name", "n", "--permissions", "send"),
            ("list",),
            ("revoke", "--id", ID),
        ):
            assert cli("key", *words, "--endpoint", url) == (1, "", refused)


@pytest.mark.parametrize("word", ["-h", "--help", "-help", "help"])
def test_help_on_key_lists_its_commands(cli: Run, word: str) -> None:
    code, out, err = cli("key", word)
    assert (code, out) == (0, "")
    assert err.startswith("Usage: mqlite key <command> [flags]\n")
    for name in ("key create", "key list", "key revoke"):
        assert f"\n  {name} " in err
    assert "try 'mqlite key -h'" in cli("help", "key").err


# Monitors of a broker


AUTH = serve.Auth(["admin"])


@pytest.mark.parametrize("setting", [None, "", "  ", "off", " OFF "])
def test_no_monitors(setting: str | None) -> None:
    assert serve.monitor_tokens(setting, AUTH) == []
    assert serve.monitor_tokens(setting, serve.Auth("off")) == []


def test_monitors() -> None:
    assert serve.monitor_tokens(" a, ,b ", AUTH) == ["a", "b"]
    assert serve.monitor_tokens("a", serve.broker_auth(None)) == ["a"]


@pytest.mark.parametrize(
    ("setting", "auth", "problem"),
    [
        (" , ", AUTH, "holds no token"),
        ("secret", serve.Auth("off"), "needs authentication"),
        ("secret", serve.Auth(["a", "secret"]), "must not share"),
    ],
)
def test_monitors_that_cannot_be(setting: str, auth: serve.Auth, problem: str) -> None:
    with pytest.raises(CommandError, match=problem) as refused:
        serve.monitor_tokens(setting, auth)
    assert "secret" not in str(refused.value)


def test_they_are_refused_before_the_database_is_opened(
    cli: Run, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MQLITE_TOKENS", "same")
    monkeypatch.setenv("MQLITE_MONITOR_TOKENS", "same")
    assert cli("serve").code == 1
    assert not database.exists()

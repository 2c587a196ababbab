"""`mqlite status`: what it shows, and what it says where the database does not answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mqlite
from client import stub
from mqlite.errors import Unavailable

from .conftest import Run

Ok = Callable[..., str]

UPSTREAM: dict[str, Any] = {
    "version": "0.3.3",
    "backend": "local file",
    "remote": False,
    "location": "/data/mq.db",
    "schema_version": "5",
    "ping_ms": 1,
    "db_size_bytes": 3 * 1024 * 1024,
    "queues": 2,
    "subscriptions": 1,
    "uptime_ms": 61_500,
    "auth": True,
}
"""The answer of a broker of the Go program."""


def facts(text: str) -> dict[str, str]:
    return dict(line.split(None, 1) for line in text.splitlines())


def test_an_embedded_database(ok: Ok, database: Path) -> None:
    ok("create-queue", "q")
    ok("subscribe", "t", "s")
    lines = facts(ok("status"))
    assert lines["version:"] == mqlite.__version__
    assert lines["backend:"] == "local file"
    assert lines["location:"] == str(database)
    assert (lines["queues:"], lines["subscriptions:"]) == ("1", "1")
    assert "uptime:" not in lines
    assert json.loads(ok("status", "--output", "json"))["schema_version"] == lines["schema:"]


@pytest.mark.parametrize("level", ["NORMAL", "FULL", "OFF", "EXTRA"])
def test_the_durability_in_force(ok: Ok, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQLITE_SYNC", level)
    assert facts(ok("status"))["synchronous:"] == level


def test_the_size_of_the_log(ok: Ok, database: Path) -> None:
    with mqlite.open(database) as mq, mq.serving(tokens="off") as url:
        mq.create_queue("q")
        mq.send_batch("q", [bytes(100_000)] * 20)
        shown = facts(ok("status", "--endpoint", url))["log:"]
        size = json.loads(ok("status", "--endpoint", url, "--output", "json"))["wal_size_bytes"]
    assert size > 2_000_000
    assert shown == f"{size / 1024 / 1024:.2f} MiB"


def test_memory_has_no_log(ok: Ok, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQLITE_DB", ":memory:")
    assert "log:" not in facts(ok("status"))


def test_a_broker_of_the_go_program(cli: Run) -> None:
    with stub.serving(lambda method, body: (200, UPSTREAM)) as broker:
        assert cli("status", "--endpoint", broker.url).out == (
            "version:       0.3.3\n"
            "backend:       local file\n"
            "location:      /data/mq.db\n"
            "schema:        5\n"
            "ping:          1ms\n"
            "size:          3.00 MiB\n"
            "queues:        2\n"
            "subscriptions: 1\n"
            "uptime:        61s\n"
            "auth:          on\n"
        )
        printed = cli("status", "--endpoint", broker.url, "--output", "json").out
        assert json.loads(printed) == UPSTREAM


def test_a_database_that_does_not_answer_is_a_failure(cli: Run) -> None:
    dead = UPSTREAM | {"ping_ms": -1, "queues": 0, "subscriptions": 0}
    refused = (
        "error: the database /data/mq.db does not answer a read; 'The database fails' in"
        " docs/operations.md says how to go on\n"
    )
    with stub.serving(lambda method, body: (200, dead)) as broker:
        code, out, err = cli("status", "--endpoint", broker.url)
        assert (code, err) == (1, refused)
        assert facts(out)["ping:"] == "failed"
        assert not facts(out).keys() & {"queues:", "subscriptions:"}
        code, out, err = cli("status", "--endpoint", broker.url, "--output", "json")
        assert (code, err) == (1, refused)
        assert json.loads(out) == dead


def test_a_damaged_file_is_named_with_what_to_do(cli: Run, ok: Ok, database: Path) -> None:
    ok("create-queue", "q")
    size = database.stat().st_size
    with database.open("rb+") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    for command in (["status"], ["list"], ["doctor"], ["send", "q", "x"]):
        code, out, err = cli(*command)
        assert (code, out) == (1, "")
        assert re.fullmatch(
            rf"error: {database} is damaged \(.+\); 'The database fails' in docs/operations\.md says"
            r" how to go on\n",
            err,
        )


@pytest.mark.parametrize("reason", ["storage", "disk_full", "read_only", "database_locked"])
def test_what_fails_because_of_an_open_file_is_told_with_its_name(
    cli: Run, database: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    def fail(_: mqlite.Embedded) -> None:
        raise Unavailable("no", reason=reason)

    monkeypatch.setattr(mqlite.Embedded, "list_queues", fail)
    assert cli("list") == (1, "", f"error: file:{database}: no\n")


def test_a_backup_of_a_damaged_file_names_it(ok: Ok, cli: Run, database: Path) -> None:
    ok("create-queue", "q")
    size = database.stat().st_size
    with database.open("rb+") as file:
        file.seek(8192)
        file.write(b"\xff" * (size - 8192))
    code, _, err = cli("backup", str(database.with_name("snapshot.db")))
    assert code == 1
    assert err.startswith(f"error: {database} is damaged (")

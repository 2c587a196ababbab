"""`mqlite observe`: the same JSON in both forms, embedded and of a broker."""

from __future__ import annotations

from pathlib import Path

import pytest

import mqlite
from mqlite.broker.serve import serving
from mqlite.cli import main
from mqlite.observation.decoding import decode
from observation.looks import events, gauges

MONITOR = "monitor-secret"


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "mq.db"
    monkeypatch.setenv("MQLITE_DB", f"file:{path}")
    for name in ("MQLITE_ENDPOINT", "MQLITE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return path


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_database_of_the_environment(
    form: str, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with mqlite.open(database) as mq:
        mq.create_queue("q")
        mq.send("q", b"x")
    assert main(["observe", "--output", form]) == 0
    found = decode(capsys.readouterr().out.encode())
    assert (found.access, found.http.state) == ("embedded", "not_applicable")
    assert gauges(found).active == 1


def test_a_broker_by_the_token_of_a_monitor(
    database: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        mqlite.open(database) as mq,
        serving(mq, tokens=["admin-secret"], monitor_tokens=[MONITOR]) as url,
    ):
        mq.create_queue("q")
        mq.send("q", b"x")
        monkeypatch.setenv("MQLITE_ENDPOINT", url)
        monkeypatch.setenv("MQLITE_TOKEN", MONITOR)
        assert main(["observe"]) == 0
        found = decode(capsys.readouterr().out.encode())
        assert (found.access, found.http.state) == ("monitor", "available")
        assert events(found) == {"enqueued": 1}
        assert main(["metrics", "q"]) == 1

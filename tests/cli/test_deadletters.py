"""Redriving and purging dead letters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import mqlite
from client import stub
from mqlite.cli.deadletters import CHUNK, in_chunks
from mqlite.model import MoveResult

from .conftest import Run

Ok = Callable[..., str]


@pytest.fixture(autouse=True)
def dead_letters(database: Path) -> None:
    """Three dead letters in `q`."""
    with mqlite.open(f"file:{database}") as mq:
        mq.create_queue("q")
        mq.create_queue("other")
        mq.send_batch("q", ["a", "b", "c"])
        for message in mq.receive("q", max_messages=3):
            message.reject()


def dead(ok: Ok) -> int:
    return int(ok("metrics", "q").partition("dead=")[2].split()[0])


def test_redrive_in_place_and_elsewhere(ok: Ok) -> None:
    assert ok("redrive", "q", "--max", "1") == "ok: action=redrive moved=1\n"
    assert ok("redrive", "q", "--to", "other") == "ok: action=redrive moved=2\n"
    assert ok("receive", "q").startswith("seq=1 ")
    assert ok("receive", "other", "--max", "5").count("\n") == 2


def test_purge_needs_a_bound_or_all(cli: Run, ok: Ok) -> None:
    for words in ([], ["--max", "0"], ["--older-than", "0"], ["--all=false"]):
        result = cli("purge-dlq", "q", *words)
        assert result.code == 1
        assert "give a bound" in result.err
    assert dead(ok) == 3
    assert ok("purge-dlq", "q", "--max", "1") == "ok: action=purge-dlq purged=1\n"
    assert ok("purge-dlq", "q", "--older-than", "24h") == "ok: action=purge-dlq purged=0\n"
    assert ok("purge-dlq", "q", "--all") == "ok: action=purge-dlq purged=2\n"


@pytest.mark.parametrize("bound", [("--max", "0"), ("--max", "5"), ("--older-than", "0")])
def test_all_excludes_a_bound(cli: Run, ok: Ok, bound: tuple[str, str]) -> None:
    result = cli("purge-dlq", "q", "--all", *bound)
    assert result.code == 1
    assert "--all deletes everything" in result.err
    assert dead(ok) == 3


@pytest.mark.parametrize("command", ["redrive", "purge-dlq"])
@pytest.mark.parametrize(
    "bound", [("--max", "-1"), ("--older-than", "-1h"), ("--older-than", "999us")]
)
def test_bounds_that_would_mean_none_are_refused(
    cli: Run, ok: Ok, command: str, bound: tuple[str, str]
) -> None:
    result = cli(command, "q", *bound)
    assert (result.code, result.out) == (1, "")
    assert dead(ok) == 3


def test_an_unknown_queue(cli: Run) -> None:
    assert cli("redrive", "nowhere").code == 1
    assert cli("purge-dlq", "nowhere", "--all").code == 1
    assert cli("redrive", "q", "--to", "nowhere").code == 1


def test_a_long_run_goes_in_chunks() -> None:
    asked: list[int] = []

    def move(count: int) -> MoveResult:
        asked.append(count)
        return MoveResult(count)

    assert in_chunks("moving", move, limit=2 * CHUNK + 5) == 2 * CHUNK + 5
    assert asked == [CHUNK, CHUNK, 5]


def test_a_call_that_is_cut_short_is_asked_again() -> None:
    answers = iter([MoveResult(3, complete=False), MoveResult(4)])
    assert in_chunks("moving", lambda count: next(answers), limit=10) == 7


def test_messages_that_die_again_do_not_make_it_endless() -> None:
    assert in_chunks("moving", lambda count: MoveResult(count), limit=7) == 7


def test_the_broker_is_asked_for_what_its_contract_has(
    cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def behaviour(method: str, body: dict[str, object]) -> stub.Answer:
        if method == "Stats":
            return 200, {"queue": "q", "dead_lettered": 5}
        return 200, {"moved": 2, "complete": body["max"] != 5}

    with stub.serving(behaviour) as broker:
        monkeypatch.setenv("MQLITE_ENDPOINT", broker.url)
        assert cli("redrive", "q", "--older-than", "1h").out == "ok: action=redrive moved=4\n"
    first, second = (request.body for request in broker.requests[1:])
    assert first == {"queue": "q", "max": 5, "older_than_ms": 3_600_000}
    assert second == {"queue": "q", "max": 3, "older_than_ms": 3_600_000}

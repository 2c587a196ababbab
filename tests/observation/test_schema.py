"""One form: written down in a golden file, decoded strictly, the same every way."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import pytest

import mqlite
from contract.ways import World
from mqlite.broker.serve import serving
from mqlite.clock import ManualClock
from mqlite.errors import MqliteError
from mqlite.observation import decoding
from mqlite.observation.decoding import decode
from mqlite.observation.vocabulary import EVENTS, FILTER_EVENTS
from observation.golden import GOLDEN, TOKEN, golden, observed

ENGINE = Path(mqlite.__file__).parent / "engine"


def test_the_golden_file() -> None:
    meant = "if this is meant: PYTHONPATH=tests python tests/observation/golden.py"
    assert golden(observed()) == GOLDEN.read_text(), meant


def test_the_golden_file_is_an_observation() -> None:
    text = GOLDEN.read_bytes()
    assert json.loads(msgspec.json.encode(decode(text))) == json.loads(text)


def test_every_way_shows_the_same(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"x")
    shown, own = mq.observe(), world.core.observe()
    assert (shown.queues, shown.messages) == (own.queues, own.messages)
    assert (shown.started_at_ms, shown.backend) == (own.started_at_ms, own.backend)
    over_http = world.way.startswith("http")
    assert shown.access == ("manage" if over_http else "embedded")
    assert shown.http.state == ("available" if over_http else "not_applicable")
    assert decode(msgspec.json.encode(shown)) == shown


def test_what_is_new_is_let_through() -> None:
    newer = json.loads(GOLDEN.read_bytes())
    newer["more"] = newer["collection"]["more"] = 1
    newer["maintenance"].append(deepcopy(newer["maintenance"][0]) | {"task": "more"})
    newer["messages"].append({"queue": "orders", "event": "more", "count": 1})
    newer["filters"].append({"stage": "more", "count": 1})
    newer["storage"]["operations"].append(
        newer["storage"]["operations"][0] | {"operation": "more", "outcome": "more"}
    )
    newer["maintenance"][0]["diagnostics"]["outcome"] = newer["access"] = "more"
    newer["http"]["authentication"].append({"outcome": "more", "count": 1})
    found = decode(json.dumps(newer).encode())
    assert found.maintenance[-1].task == found.storage.operations[-1].outcome == "more"


def test_an_unavailable_collection_may_have_a_code_that_is_new() -> None:
    newer = json.loads(GOLDEN.read_bytes())
    newer |= {"queues": None, "queue_count": 0, "subscription_count": 0}
    newer["collection"] |= {"state": "unavailable", "error_code": "more"}
    assert decode(json.dumps(newer).encode()).collection.error_code == "more"
    newer["collection"]["error_code"] = ""
    with pytest.raises(ValueError, match="no error_code"):
        decode(json.dumps(newer).encode())


def test_diagnostics_may_be_missing() -> None:
    older = json.loads(GOLDEN.read_bytes())
    for task in older["maintenance"]:
        del task["diagnostics"]
    for operation in older["storage"]["operations"]:
        operation.pop("last_error", None)
    assert decode(json.dumps(older).encode()).maintenance[0].diagnostics is None


def _paths(part: Any, *path: str | int) -> Iterator[tuple[str | int, ...]]:
    """Every field, in the first object of each list."""
    if isinstance(part, dict):
        for key, value in part.items():
            yield (*path, key)
            yield from _paths(value, *path, key)
    elif isinstance(part, list) and part:
        yield from _paths(part[0], *path, 0)


OPTIONAL = {"diagnostics", "last_error", "sqlite_code", "http_status"}
FIELDS = [path for path in _paths(json.loads(GOLDEN.read_bytes())) if path[-1] not in OPTIONAL]


@pytest.mark.parametrize("path", FIELDS, ids=lambda path: ".".join(map(str, path)))
def test_an_incomplete_observation_is_refused(path: tuple[str | int, ...]) -> None:
    whole = json.loads(GOLDEN.read_bytes())
    part = whole
    for key in path[:-1]:
        part = part[key]
    del part[path[-1]]
    with pytest.raises(ValueError, match=re.escape(str(path[-1]))):
        decode(json.dumps(whole).encode())


def _change(*path: Any) -> Callable[[Any], None]:
    *path, last, value = path

    def change(part: Any) -> None:
        for key in path:
            part = part[key]
        part[last] = value

    return change


def _first_twice(*path: Any) -> Callable[[Any], None]:
    def change(part: Any) -> None:
        for key in path:
            part = part[key]
        part.append(part[0])

    return change


def _without(index: int, *path: Any) -> Callable[[Any], None]:
    def change(part: Any) -> None:
        for key in path:
            part = part[key]
        part.pop(index)

    return change


FAILURE = {"at_ms": 1, "step": "s", "category": "io", "explanation": "e", "fingerprint": "f"}
OPERATIONS = ("storage", "operations")
HISTOGRAM = (*OPERATIONS, 0, "duration_seconds")
WRONG: dict[str, tuple[Callable[[Any], None], str]] = {
    "available without queues": (_change("queues", None), "available and queues are null"),
    "available with a code": (_change("collection", "error_code", "io"), "has an error_code"),
    "unavailable with queues": (_change("collection", "state", "unavailable"), "there are queues"),
    "another state": (_change("collection", "state", "fine"), "collection.state"),
    "another queue count": (_change("queue_count", 7), "queue_count and"),
    "another subscription count": (_change("subscription_count", 7), "queue_count and"),
    "states that do not add up": (_change("queues", 0, "retained", 99), "do not add up"),
    "a negative count": (_change("queues", 0, "active", -1), "active"),
    "a queue twice": (_first_twice("queues"), "queues holds .* twice"),
    "an answer without its latency": (_change("runtime", "ping_seconds", None), "ping_seconds"),
    "a latency without an answer": (_change("runtime", "read_available", False), "read_available"),
    "a size that is not there": (_change("runtime", "db_size_available", True), "db_size"),
    "a text for a count": (_change("messages", 0, "count", "1"), r"messages\[0\].count"),
    "an event twice": (_first_twice("messages"), "messages holds .* twice"),
    "an operation missing": (_without(-1, *OPERATIONS), "storage.operations lacks"),
    "an operation twice": (_first_twice(*OPERATIONS), "storage.operations holds .* twice"),
    "a count without its histogram": (_change(*OPERATIONS, 0, "count", 99), "its histogram"),
    "no buckets": (_change(*HISTOGRAM, "buckets", []), "do not ascend"),
    "bounds that do not ascend": (_change(*HISTOGRAM, "buckets", 0, "le", 5), "do not ascend"),
    "buckets that fall": (_change(*HISTOGRAM, "buckets", 0, "count", 9), "not cumulative"),
    "a bucket above the total": (_change(*HISTOGRAM, "buckets", -1, "count", 99), "not cumulative"),
    "a negative sum": (_change(*HISTOGRAM, "sum", -1), "duration_seconds.sum"),
    "a sum of nothing": (_change(*OPERATIONS, 1, "duration_seconds", "sum", 1), "a sum of 1"),
    "a task missing": (_without(0, "maintenance"), "maintenance lacks"),
    "nine failures": (
        _change("maintenance", 0, "diagnostics", "failures", [FAILURE] * 9),
        "diagnostics.failures",
    ),
    "a stage missing": (_without(-1, "filters"), "filters lacks"),
    "a broker that is not there": (_change("http", "state", "not_applicable"), "not applicable"),
    "a credential outcome missing": (_without(-1, "http", "authentication"), "lacks"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_observation_at_odds_with_itself_is_refused(wrong: str) -> None:
    change, problem = WRONG[wrong]
    whole = json.loads(GOLDEN.read_bytes())
    change(whole)
    with pytest.raises(ValueError, match=problem):
        decode(json.dumps(whole).encode())


@pytest.mark.parametrize("text", [b"", b"null", b"[]", b"{}", b"\xff", b'{"a":' * 100_000])
def test_what_is_no_observation_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="the observation is malformed"):
        decode(text)


def test_one_that_is_too_large_is_refused_before_it_is_read() -> None:
    with pytest.raises(ValueError, match="the limit is 33554432"):
        decode(b" " * (decoding.MAX_BYTES + 1))


def test_a_client_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    with mqlite.open(":memory:", clock=ManualClock()) as mq, serving(mq, tokens=[TOKEN]) as url:
        monkeypatch.setattr("mqlite.broker.monitoring.Monitoring.observe", _nothing)
        with mqlite.Client(url, token=TOKEN) as client, pytest.raises(MqliteError, match="sampled"):
            client.observe()


async def _nothing(self: Any, rights: Any) -> msgspec.Struct:
    return mqlite.wire.EmptyResponse()


def test_every_effect_of_the_engine_has_its_word() -> None:
    sources = "".join(file.read_text() for file in ENGINE.glob("*.py"))
    named = set(re.findall(r'Event\("(\w+)"', sources))
    assert len(named) > 15
    assert named - {*EVENTS, *FILTER_EVENTS} == set()

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
from broker.support import Api
from contract.ways import World
from mqlite.broker.serve import serving
from mqlite.clock import ManualClock
from mqlite.errors import MqliteError
from mqlite.observation import decoding
from mqlite.observation.decoding import decode
from mqlite.observation.vocabulary import EVENTS, FILTER_EVENTS

GOLDEN = Path(__file__).parent / "golden.json"
ENGINE = Path(mqlite.__file__).parent / "engine"
TOKEN = "golden-token"


@pytest.fixture
def whole() -> Iterator[dict[str, Any]]:
    """An observation in which every part has something to say."""
    clock = ManualClock()
    with mqlite.open(":memory:", clock=clock) as mq, serving(mq, tokens=[TOKEN]) as url:
        api = Api(url, TOKEN)
        mq.create_queue("orders")
        mq.subscribe("events", "audit", expr="int(subject) > 1")
        mq.send_batch("orders", [b"a", b"b"])
        mq.receive("orders")
        mq.send("events", b"", subject="a")
        clock.advance(1500)
        with pytest.raises(mqlite.LockLost):
            mq.complete("orders", 1, "0" * 32)
        mq.maintain()
        api.post("Stats", {"queue": "orders"})
        yield json.loads(api.post("Observe", {}).raw)


def settled(part: Any, name: str = "") -> Any:
    """The same observation on any machine: what was timed takes a millisecond, and so does
    what depends on how the machine felt."""
    if isinstance(part, dict):
        found = {key: settled(value, key) for key, value in part.items()}
        if "operation" in found:
            # How many operations it takes is the engine's own affair.
            once = min(found["count"], 1)
            found["count"] = once
            found["duration_seconds"] = settled(part["duration_seconds"] | {"count": once})
        if "buckets" in found:
            found["sum"] = found["count"] / 1000
            for bucket in found["buckets"]:
                bucket["count"] = found["count"] if bucket["le"] >= 0.001 else 0
        if "waits" in found:
            found["waits"] = 1
        return found
    if isinstance(part, list):
        return [settled(each, name) for each in part]
    if isinstance(part, float) and (name.endswith("duration_seconds") or name == "ping_seconds"):
        return 0.001 if part else 0.0
    return "(version)" if name == "version" else part


def golden(whole: dict[str, Any]) -> str:
    """An observation as the golden file has it: an entry a line, without what is the same for
    every operation of the contract."""
    found = settled(whole)
    for part, name in (
        (found, "messages"),
        (found["http"], "requests"),
        (found["http"], "handlers"),
    ):
        first, *others = part[name]
        part[name] = [first, *(each for each in others if _happened(each))]
    return _lines(found, "") + "\n"


def _happened(entry: dict[str, Any]) -> bool:
    return bool(entry["count"] if "count" in entry else entry["duration_seconds"]["count"])


def _lines(part: Any, indent: str) -> str:
    if isinstance(part, dict) and any(isinstance(value, dict | list) for value in part.values()):
        deeper = indent + "  "
        inner = (f"{deeper}{json.dumps(key)}: {_lines(each, deeper)}" for key, each in part.items())
        return "{\n" + ",\n".join(inner) + f"\n{indent}}}"
    if isinstance(part, list) and part and isinstance(part[0], dict):
        return "[\n" + ",\n".join(f"{indent}  {json.dumps(each)}" for each in part) + f"\n{indent}]"
    return json.dumps(part)


def test_the_golden_file(whole: dict[str, Any]) -> None:
    meant = "if this is meant: PYTHONPATH=tests python tests/observation/golden.py"
    assert golden(whole) == GOLDEN.read_text(), meant


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
    assert decode(json.dumps(newer).encode()).maintenance[-1].task == "more"


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


HISTOGRAM = ("storage", "operations", 0, "duration_seconds")
WRONG: dict[str, Callable[[Any], None]] = {
    "available without queues": _change("queues", None),
    "available with a code": _change("collection", "error_code", "io"),
    "unavailable with queues": _change("collection", "state", "unavailable"),
    "another state": _change("collection", "state", "fine"),
    "another queue count": _change("queue_count", 7),
    "another subscription count": _change("subscription_count", 7),
    "states that do not add up": _change("queues", 0, "retained", 99),
    "a negative count": _change("queues", 0, "active", -1),
    "a queue twice": _first_twice("queues"),
    "an answer without its latency": _change("runtime", "ping_seconds", None),
    "a latency without an answer": _change("runtime", "read_available", False),
    "a size that is not there": _change("runtime", "db_size_available", True),
    "a text for a count": _change("messages", 0, "count", "1"),
    "an event twice": _first_twice("messages"),
    "an operation missing": lambda found: found["storage"]["operations"].pop(),
    "an operation twice": _first_twice("storage", "operations"),
    "a count without its histogram": _change("storage", "operations", 0, "count", 99),
    "no buckets": _change(*HISTOGRAM, "buckets", []),
    "bounds that do not ascend": _change(*HISTOGRAM, "buckets", 0, "le", 5),
    "buckets that are not cumulative": _change(*HISTOGRAM, "buckets", 0, "count", 9),
    "a bucket above the total": _change(*HISTOGRAM, "buckets", -1, "count", 99),
    "a negative sum": _change(*HISTOGRAM, "sum", -1),
    "a sum of nothing": _change("storage", "operations", 1, "duration_seconds", "sum", 1),
    "a task missing": lambda found: found["maintenance"].pop(0),
    "nine failures": lambda found: _change("maintenance", 0, "diagnostics", "failures", [{}] * 9)(
        found
    ),
    "a stage missing": lambda found: found["filters"].pop(),
    "a broker that is not there": _change("http", "state", "not_applicable"),
    "a credential outcome missing": lambda found: found["http"]["authentication"].pop(),
    "an access of nobody": _change("access", "root"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_observation_at_odds_with_itself_is_refused(wrong: str) -> None:
    whole = json.loads(GOLDEN.read_bytes())
    WRONG[wrong](whole)
    with pytest.raises(ValueError, match=r"\w"):
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

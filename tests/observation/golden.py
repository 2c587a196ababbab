"""The observation that golden.json holds, and what makes two of them comparable.

PYTHONPATH=tests python tests/observation/golden.py writes the file anew.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import mqlite
from broker.support import Api
from mqlite.broker.serve import serving
from mqlite.clock import ManualClock

GOLDEN = Path(__file__).parent / "golden.json"
TOKEN = "golden-token"


def observed() -> dict[str, Any]:
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
        with suppress(mqlite.LockLost):
            mq.complete("orders", 1, "0" * 32)
        mq.maintain()
        api.post("Stats", {"queue": "orders"})
        found: dict[str, Any] = json.loads(api.post("Observe", {}).raw)
        return found


def golden(whole: dict[str, Any]) -> str:
    """An observation as the golden file has it: an entry a line, without what is the same for
    every operation of the contract."""
    found = _settled(whole)
    for part, name in (
        (found, "messages"),
        (found["http"], "requests"),
        (found["http"], "handlers"),
    ):
        first, *others = part[name]
        part[name] = [first, *(each for each in others if _happened(each))]
    return _lines(found, "") + "\n"


def _settled(part: Any, name: str = "") -> Any:
    """The same observation on any machine: what was timed takes a millisecond, and so does
    what depends on how the machine felt."""
    if isinstance(part, dict):
        found = {key: _settled(value, key) for key, value in part.items()}
        if "operation" in found:
            # How many operations it takes is the engine's own affair.
            once = min(found["count"], 1)
            found["count"] = once
            found["duration_seconds"] = _settled(part["duration_seconds"] | {"count": once})
        if "buckets" in found:
            found["sum"] = found["count"] / 1000
            for bucket in found["buckets"]:
                bucket["count"] = found["count"] if bucket["le"] >= 0.001 else 0
        if "waits" in found:
            found["waits"] = 1
        return found
    if isinstance(part, list):
        return [_settled(each, name) for each in part]
    if isinstance(part, float) and (name.endswith("duration_seconds") or name == "ping_seconds"):
        return 0.001 if part else 0.0
    return "(version)" if name == "version" else part


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


if __name__ == "__main__":
    GOLDEN.write_text(golden(observed()))

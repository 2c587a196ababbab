"""The recorded outcomes of the reference engine: reading, running and comparing them."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mqlite.expr import Budget, ExprError, ExprRuntimeError, compile
from mqlite.expr.gotime import Duration, Month, Time, Weekday, parse_time
from mqlite.expr.gotime.layout import RFC3339_NANO
from mqlite.expr.message import MESSAGE_ENV, Sample, compile_filter
from mqlite.expr.values import AnyMap, StringMap, is_array

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "vectors"

ZERO_VALUES: dict[str, Any] = dict(Sample().values())
ZERO_VALUES["visible_at"] = ZERO_VALUES["enqueued_at"] = Time(0)


def read(name: str) -> list[dict[str, Any]]:
    lines = (FOLDER / name).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def environment(given: dict[str, Any]) -> dict[str, Any]:
    values = dict(ZERO_VALUES)
    for name, value in given.items():
        if name in ("enqueued_at", "visible_at"):
            value = Time.from_millis(value)
        elif name in ("subject_parts", "property_keys"):
            value = tuple(value)
        elif name == "properties":
            value = StringMap(value)
        elif isinstance(value, dict) and set(value) == {"$rawstr"}:
            value = base64.b64decode(value["$rawstr"]).decode("utf-8", "surrogateescape")
        values[name] = value
    return values


def same(expected: Any, actual: Any, tolerance: float = 0.0) -> bool:
    """Whether a value is the one a vector describes, kinds included."""
    if isinstance(expected, dict) and len(expected) == 1 and next(iter(expected)).startswith("$"):
        return _same_tagged(*next(iter(expected.items())), actual)
    if isinstance(expected, float) and not isinstance(expected, bool):
        if type(actual) is not float:
            return False
        close = math.isclose(expected, actual, rel_tol=tolerance, abs_tol=0.0)
        return close and math.copysign(1, expected) == math.copysign(1, actual)
    if isinstance(expected, list):
        if not is_array(actual) or isinstance(actual, bytes) or len(actual) != len(expected):
            return False
        return all(same(a, b, tolerance) for a, b in zip(expected, actual, strict=True))
    if isinstance(expected, dict):
        if not isinstance(actual, dict) or actual.keys() != expected.keys():
            return False
        return all(same(value, actual[key], tolerance) for key, value in expected.items())
    if isinstance(expected, bool) or expected is None or isinstance(expected, str):
        return type(actual) is type(expected) and actual == expected
    return isinstance(actual, int) and not isinstance(actual, bool) and int(actual) == expected


def _same_tagged(tag: str, value: Any, actual: Any) -> bool:
    match tag:
        case "$float":
            number = float(value)
            return type(actual) is float and (
                actual == number or (math.isnan(actual) and math.isnan(number))
            )
        case "$duration":
            return actual == Duration(value)
        case "$time":
            wanted = parse_time(value, RFC3339_NANO)
            return isinstance(actual, Time) and actual == wanted
        case "$bytes":
            return type(actual) is bytes and actual == base64.b64decode(value)
        case "$rawstr":
            return type(actual) is str and actual.encode(
                "utf-8", "surrogateescape"
            ) == base64.b64decode(value)
        case "$map":
            if not isinstance(actual, (dict, AnyMap)) or len(actual) != len(value):
                return False
            entries = list(actual.items() if isinstance(actual, dict) else actual.entries.values())
            return all(
                any(same(k, key) and same(v, held) for key, held in entries) for k, v in value
            )
    raise AssertionError(tag)


def check(vector: dict[str, Any]) -> str | None:
    """None if the outcome is the recorded one, else what differs."""
    try:
        outcome = _evaluate(vector)
    except ExprError as error:
        return _check_error(vector, error)
    if "error" in vector:
        return f"no {vector['error']} error ({_message(vector)}) but {outcome!r}"
    expected = vector["result"]
    if isinstance(expected, dict) and "$named" in expected:
        kind = {"time.Month": Month, "time.Weekday": Weekday}[expected["$named"]]
        good = outcome == kind(expected["value"])
    else:
        good = same(expected, outcome, vector.get("tol", 0.0))
    return None if good else f"{outcome!r}, not {expected!r}"


def _evaluate(vector: dict[str, Any]) -> Any:
    values = environment(vector["env"])
    if vector.get("as") != "bool":
        return compile(vector["expr"], MESSAGE_ENV).run(values, Budget())
    compiled = compile_filter(vector["expr"])
    return True if compiled.program is None else compiled.program.run(values, Budget())


def _message(vector: dict[str, Any]) -> str:
    return str(vector.get("msg") or vector.get("full"))


def _check_error(vector: dict[str, Any], error: ExprError) -> str | None:
    """Class and position; for run-time errors the position is more than is asked for."""
    kind = "runtime" if isinstance(error, ExprRuntimeError) else "compile"
    if vector.get("error") != kind:
        return (
            f"{kind} error {error.message!r}, not {vector.get('error') or vector.get('result')!r}"
        )
    position = None if error.line is None else [error.line, error.column]
    if "cat" in vector and position != vector.get("pos"):
        return f"position {position}, not {vector.get('pos')} ({error.message}; {_message(vector)})"
    if "full" in vector and str(error) != vector["full"]:
        return f"text {str(error)!r}, not {vector['full']!r}"
    return None


def check_message(vector: dict[str, Any]) -> str | None:
    """As `check`, for a whole filter over a whole message."""
    given = dict(vector["message"])
    body = given.pop("body", "").encode()
    if "body_b64" in given:
        body = base64.b64decode(given.pop("body_b64"))
    sample = Sample(body=body, **given)
    try:
        outcome = compile_filter(vector["expr"]).matches(sample, Budget())
    except ExprError as error:
        return _check_error(vector, error) or ("matched" if vector["matched"] else None)
    if "error" in vector:
        return f"no {vector['error']} error but {outcome}"
    return None if outcome is vector["matched"] else f"{outcome}, not {vector['matched']}"


def failures(vectors: list[dict[str, Any]], checker: Any = check) -> Iterator[str]:
    for vector in vectors:
        problem = checker(vector)
        if problem is not None:
            yield f"{vector['expr']!r}: {problem}"

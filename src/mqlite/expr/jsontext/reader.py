"""JSON text to values: numbers are floats, the last of duplicate keys wins."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from mqlite.expr.errors import Fault
from mqlite.expr.text import replace_broken
from mqlite.expr.values import Value

from .strict import read_strictly

__all__ = ["from_json"]

_SURROGATE_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)


def from_json(text: str) -> Value:
    """The value of a JSON text; raises Fault, with the reference's message, if it is none.

    The standard library's decoder does the work. What it refuses, or cannot nest as deep as the
    reference does, is read again step by step, which has the last word.
    """
    text = replace_broken(text)
    if "\\u" in text:
        text = _SURROGATE_ESCAPE.sub(_replace_lone, text)
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return read_strictly(text)


def _replace_lone(found: re.Match[str]) -> str:
    return "\\ufffd" if found[1] else found[0]


def _number(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise Fault(f"json: cannot unmarshal number {digits} into Go value of type float64")
    return value


def _refuse(name: str) -> Any:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_float=_number, parse_int=_number, parse_constant=_refuse)

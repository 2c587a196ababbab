"""The two readers of JSON text are one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from mqlite.expr.errors import Fault
from mqlite.expr.jsontext import from_json
from mqlite.expr.jsontext.strict import read_strictly

VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
TEXTS = st.lists(
    st.sampled_from(
        ["[", "]", "{", "}", ",", ":", '"a"', '"', "\\", "\\u00e9", "\\x", "1", "-", "0", ".5", "e",
         "+", "E9", "true", "nul", "null", "NaN", "Infinity", " ", "\n", "\v", "é", "\x1f", "\ufeff"]
    ),
    max_size=12,
).map("".join)  # fmt: skip


def outcome(read: Any, text: str) -> Any:
    try:
        return json.dumps(read(text))
    except Fault:
        return "refused"


@given(VALUES)
def test_values_come_back(value: Any) -> None:
    text = json.dumps(value)
    assert from_json(text) == read_strictly(text) == value
    assert from_json(json.dumps(value, ensure_ascii=False, indent=1)) == value


@given(TEXTS)
def test_both_readers_agree(text: str) -> None:
    assert outcome(from_json, text) == outcome(read_strictly, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unexpected end of JSON input"),
        ("[1,", "unexpected end of JSON input"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ("{a: 1}", "invalid character 'a' looking for beginning of object key string"),
        ("[1 2]", "invalid character '2' after array element"),
        ("01", "invalid character '1' after top-level value"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ('"\\x"', "invalid character 'x' in string escape code"),
        ("trux", "invalid character 'x' in literal true (expecting 'e')"),
        ("1e400", "json: cannot unmarshal number 1e400 into Go value of type float64"),
    ],
)
def test_refusals_are_worded_as_the_reference_does(text: str, message: str) -> None:
    with pytest.raises(Fault) as caught:
        from_json(text)
    assert caught.value.message == message

"""All recorded outcomes of the reference engine."""

from __future__ import annotations

import pytest

from . import vectors

pytestmark = pytest.mark.skipif(
    not vectors.FOLDER.is_dir(), reason=f"the vectors are not at {vectors.FOLDER}"
)

GROUPS = [
    "asbool",
    "binary",
    "binary_bool",
    "budget",
    "builtin",
    "errfmt",
    "filter",
    "gen",
    "ident",
    "lexerr",
    "lit_coll",
    "lit_comment",
    "lit_num",
    "lit_str",
    "member",
    "mined",
    "optim",
    "parse",
    "prec",
    "pred",
    "regex",
    "soup",
    "typing",
    "unary",
]


@pytest.fixture(scope="module")
def golden() -> dict[str, list[dict[str, object]]]:
    groups: dict[str, list[dict[str, object]]] = {}
    for vector in vectors.read("expr_golden.jsonl"):
        groups.setdefault(vector["cat"], []).append(vector)
    return groups


def test_no_group_is_forgotten(golden: dict[str, list[dict[str, object]]]) -> None:
    assert sorted(golden) == sorted(GROUPS)


@pytest.mark.parametrize("group", GROUPS)
def test_golden(golden: dict[str, list[dict[str, object]]], group: str) -> None:
    assert list(vectors.failures(golden[group])) == []


def test_time() -> None:
    assert list(vectors.failures(vectors.read("expr_time.jsonl"))) == []


def test_messages() -> None:
    found = vectors.read("expr_message.jsonl")
    assert list(vectors.failures(found, vectors.check_message)) == []

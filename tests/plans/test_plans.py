"""Every hot statement seeks in the index that is meant for it, with and without statistics."""

from __future__ import annotations

import hashlib
import re

import pytest

from .ballast import Database
from .hot import COLD, COLD_MODULES, HOT
from .statements import VERBS, accesses, migrations, sources, statements

DIGESTS = {
    "0001_queue.sql": "966ef38304b3a6f000a795ab646f399ae317e679e8a6eca5d0bd05cb5cb62072",
    "0002_keys.sql": "7283d48f7d3342042d80c305d05fdfb5a5a65662ac0343522ca37c13f291a7c9",
}


@pytest.mark.parametrize("name", HOT)
def test_a_hot_statement_touches_only_what_it_may(name: str, beside_many: Database) -> None:
    assert accesses(beside_many.connection, statements()[name]) == HOT[name]


def test_every_statement_of_the_engine_is_known_to_be_hot_or_cold() -> None:
    known = {*HOT, *COLD}
    found = {name for name in statements() if name.split(".")[0] not in COLD_MODULES}
    assert found - known == set(), "add them to tests/plans/hot.py"
    assert known - found == set(), "they are gone: take them out of tests/plans/hot.py"
    assert not HOT.keys() & COLD.keys()


def test_no_statement_hides_from_these_tests() -> None:
    """SQL is written in module-level `Final` constants, never where it is used."""
    for name, source in sources().items():
        assert not re.search(r"\b(Statement|Many|Insert)\(\s*f?[\"']", source), name
        assert not re.findall(rf"^\w+ = f?[\"']+\s*(?:{'|'.join(VERBS)})\b", source, re.M), name


def test_no_hot_statement_scans_a_table() -> None:
    assert not [name for name, allowed in HOT.items() if any("scan" in way for way in allowed)]


def test_the_schema_is_the_one_that_was_released() -> None:
    """A released migration never changes: what is new goes into a new one."""
    found = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in migrations().items()}
    assert found == DIGESTS

"""COVERAGE.md names tests that exist, and leaves no line open."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (TESTS / "COVERAGE.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| line ")
]
NAMED = sorted({name for row in ROWS for name in re.findall(r"`([\w/]+\.py::\w+)`", row[1])})


@pytest.mark.parametrize("named", NAMED)
def test_every_test_named_exists(named: str) -> None:
    file, _, name = named.partition("::")
    defined = rf"^\s*(async )?def {name}\(|^{name} = \w+\.TestCase"
    assert re.search(defined, (TESTS / file).read_text(), re.MULTILINE)


def test_every_line_names_a_test_or_what_it_waits_for() -> None:
    waiting = re.compile(r"issue [345]\b|not part of this version|tests/plans")
    assert len(ROWS) > 250
    assert [row for row in ROWS if not ("::" in row[1] or waiting.search(row[1]))] == []


def test_no_line_is_there_twice() -> None:
    lines = [row[0] for row in ROWS if not row[0][0].isdigit()]
    assert sorted(lines) == sorted(set(lines))

"""What a command does not need it does not load: a short command is over in a moment."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from mqlite.cli import main
code = main({words!r})
assert code == 0, code
print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("words", "unneeded"),
    [
        ("version", "click sqlite3 asyncio mqlite.embedded mqlite.client"),
        ("list", "mqlite.expr mqlite.client mqlite.broker uvicorn"),
        ("create-queue q", "mqlite.expr mqlite.client mqlite.broker uvicorn"),
    ],
)
def test_what_is_not_loaded(words: str, unneeded: str) -> None:
    program = PROGRAM.format(words=words.split())
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    assert set(unneeded.split()) & set(child.stderr.split()) == set()


def test_a_filter_loads_the_language() -> None:
    words = ["subscribe", "events", "eu", "--expr", 'subject == "eu"']
    program = PROGRAM.format(words=words)
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "mqlite.expr" in child.stderr.split()

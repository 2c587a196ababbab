"""The pages of the documentation, and what can be read out of them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

_RUNNABLE = re.compile(r"^```python run\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(r"`([^`]+)`")


def text(page: str) -> str:
    return (ROOT / page).read_text()


def programs(page: str) -> Iterator[str]:
    """The snippets that are meant to be run, on the lines they have in the page."""
    whole = text(page)
    for fence in _RUNNABLE.finditer(whole):
        yield "\n" * whole.count("\n", 0, fence.start(1)) + fence[1]


def shell(page: str) -> Iterator[list[str]]:
    """What is to be typed into a shell: of each block its lines, continued ones put together."""
    for language, block in _FENCE.findall(text(page)):
        if language == "bash":
            yield textwrap.dedent(block).replace("\\\n", " ").splitlines()


def prose(part: str) -> str:
    """`part` without what is fenced off in it."""
    return _FENCE.sub("", part)


def section(page: str, title: str) -> str:
    """What stands between a heading and the next one."""
    _, _, rest = text(page).partition(f"\n## {title}\n")
    assert rest, f"{page} has no section {title!r}"
    return rest.partition("\n## ")[0]


def rows(part: str) -> list[list[str]]:
    """The cells of the tables in `part`, without their headings."""
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
    return [row for row in cells if "`" in "".join(row)]


def quoted(cell: str) -> list[str]:
    """What a cell has in code quotes."""
    return _QUOTED.findall(cell)

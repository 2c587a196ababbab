"""The snippets that are meant to be run do run, one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlite.embedded import Embedded

from . import pages


@pytest.mark.parametrize(
    "page",
    ["README.md", "docs/python.md", "docs/access-keys.md", "docs/receiver.md", "docs/testing.md"],
)
def test_snippets_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    programs = list(pages.programs(page))
    assert programs, f"{page} has no snippet to run"
    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        for program in programs:
            exec(compile(program, str(pages.ROOT / page), "exec"), names)
    finally:
        for value in names.values():
            if isinstance(value, Embedded):
                value.close()

"""The pages that Sphinx builds: none left out, and in the reference every public name."""

from __future__ import annotations

import re

import mqlite

from . import pages


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r"^[\w-]+$", pages.text("docs/index.md"), re.MULTILINE)
    found = [page.stem for page in (pages.ROOT / "docs").glob("*.md")]
    assert sorted([*listed, "index"]) == sorted(found)


def test_the_reference_has_every_public_name_once() -> None:
    named = re.findall(r"^\.\. auto\w+:: mqlite\.(\w+)$", pages.text("docs/api.md"), re.MULTILINE)
    assert sorted(named) == sorted(mqlite.__all__)


def test_every_example_is_described() -> None:
    described = re.findall(r"\]\(\.\./examples/([\w.]+)\)", pages.text("docs/examples.md"))
    found = [file.name for file in (pages.ROOT / "examples").iterdir() if file.is_file()]
    assert sorted(described) == sorted(found)

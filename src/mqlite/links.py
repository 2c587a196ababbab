"""Where the project lives, and how its extras come from there; the one place that says so."""

from __future__ import annotations

from typing import Final

DOCS_URL: Final = "https://github.com/mqlite-py/mqlite"


def install_hint(extra: str) -> str:
    """What to type where an extra is missing: there is no package on PyPI yet."""
    return f"pip install '.[{extra}]' in a clone of {DOCS_URL}"

"""Where the project lives; the one place that says so."""

from __future__ import annotations

from typing import Final

DOCS_URL: Final = "https://github.com/mqlite-py/mqlite"

"""Programs of others that some tests run. One that is missing skips its tests, saying how to
get it; where nothing may be skipped (CI=true) it fails them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

CACHE = Path(__file__).parent.parent / ".cache"
PROMETHEUS = "sh tools/get_prometheus.sh"


def program(name: str, get: str) -> str:
    """The path of a program; `get` is the command that gets it."""
    found = shutil.which(name) or shutil.which(name, path=_folders())
    if found is None:
        missing = f"{name} is not here; get it with: {get}"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return found


def _folders() -> str:
    return os.pathsep.join(map(str, CACHE.glob("*/usr/bin")))

"""What was found: lines of a file, so that processes and their forks report to one place."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from typing import Final

from guarding import secret

VARIABLE: Final = "GUARD_REPORTS"
"""Names the file to processes that a test starts."""

_LONGEST_LOOK: Final = 256 * 1024

_read = 0


def begin() -> None:
    """Keep reports in a new file, for this process and those that it starts."""
    global _read
    file, os.environ[VARIABLE] = tempfile.mkstemp(prefix="guard-")
    os.close(file)
    _read = 0


def end() -> None:
    os.unlink(os.environ.pop(VARIABLE))


def look(where: str, text: str | bytes) -> None:
    """Report a secret in the text."""
    text = text[:_LONGEST_LOOK]
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    before = secret.before_one(text)
    if before is not None:
        _report(f"{where}: {before}(the secret)")


def new() -> list[str]:
    """What was reported since it was last asked for."""
    global _read
    with open(os.environ[VARIABLE], encoding="utf-8", errors="replace") as file:
        file.seek(_read)
        lines = file.read().splitlines()
        _read = file.tell()
    return list(dict.fromkeys(lines))


def _report(line: str) -> None:
    # The run may be over that a process was started in.
    with suppress(OSError, KeyError), open(os.environ[VARIABLE], "ab", buffering=0) as file:
        file.write(" ".join(line.split()).encode("utf-8", "replace") + b"\n")

"""Takes out of an error's text what must not be kept: credentials and addresses."""

from __future__ import annotations

import re
from typing import Final

MAX_CHARS: Final = 500

_SECRETS: Final = (
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>]+", re.IGNORECASE), "[url]"),
    (re.compile(r"\b(Bearer|Basic|Token)\s+[^\s'\",;]+", re.IGNORECASE), r"\1 [redacted]"),
    (
        re.compile(
            r"\b([\w-]*(?:token|secret|password|passwd|pwd|api[_-]?key|authorization|credential)s?)"
            r"(['\"]?\s*[=:]\s*)(?:'[^']*'?|\"[^\"]*\"?|[^\s'\",;&]+)",
            re.IGNORECASE,
        ),
        r"\1\2[redacted]",
    ),
    (re.compile(r"\b(?:mqk|mq[a-z]?|sk|pk|gh[a-z])_[A-Za-z0-9_-]{8,}"), "[redacted]"),
    (re.compile(r"\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?"), "[redacted]"),
    (re.compile(r"\b[A-Fa-f0-9]{32,}\b|\b[A-Za-z0-9+/_-]{40,}={0,2}"), "[redacted]"),
)


def redacted(text: str) -> str:
    """One line of at most `MAX_CHARS` characters without what looks like a secret, and without
    the lone surrogates that stand for bytes of a file name: no file takes those."""
    # Cut first, well above what is kept: a text may be of any length.
    text = text[: 8 * MAX_CHARS].encode(errors="backslashreplace").decode()
    line = " ".join(text.split())
    for pattern, instead in _SECRETS:
        line = pattern.sub(instead, line)
    return line if len(line) <= MAX_CHARS else line[: MAX_CHARS - 1] + "…"

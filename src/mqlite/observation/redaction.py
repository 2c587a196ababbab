"""Takes out of an error's text what must not be kept: credentials and addresses."""

from __future__ import annotations

import re
from typing import Final

MAX_CHARS: Final = 500

_NAMES: Final = (
    "token|secret|password|passwd|passphrase|pwd|(?:api|access|account|private)[_-]?key"
    "|authorization|credential|cookie"
)
_VALUE: Final = (
    r"\[[^\]]*\]?"  # a list
    r"|'(?:\\.|[^'\\])*'?"
    r'|"(?:\\.|[^"\\])*"?'
    r"|[^\s'\",;&]+(?:,[^\s'\",;&=:]+(?![^\s,;&]))*"  # up to the next name and its value
)
_SECRETS: Final = (
    # Beginnings are bounded: else a long text is gone through to its end from many places.
    (re.compile(r"[a-z][a-z0-9+.-]{0,30}://[^\s'\"<>]+", re.IGNORECASE), "[url]"),
    (re.compile(r"\b(Bearer|Basic|Token)\s+[^\s'\",;]+", re.IGNORECASE), r"\1 [redacted]"),
    (
        re.compile(
            rf"(?<![\w-])([\w-]*(?:{_NAMES})s?)(['\"]?\s*(?:=>|[=:])\s*)(?:{_VALUE})",
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

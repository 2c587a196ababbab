"""Regular expressions: RE2, as the reference has them (spec section 12)."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import re2

from .text import is_broken, replace_broken

__all__ = ["Pattern", "PatternError", "compile", "search"]

_LONGEST_NAME = 1000

_MESSAGES = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
}


class Pattern(Protocol):
    """A compiled pattern."""

    def search(self, text: bytes) -> object: ...


class PatternError(ValueError):
    """Not a regular expression; the text is the reference's message."""


def compile(pattern: str) -> Pattern:
    """Compile a pattern; raises PatternError.

    It is unanchored and linear in time, whatever the pattern.
    """
    if is_broken(pattern):
        raise PatternError("error parsing regexp: invalid UTF-8")
    if "\\C" in pattern or not pattern.isascii():
        _refuse_foreign(pattern)
    return _compile(pattern)


# Few, as a pattern may take megabytes; those of literals are kept by their programs anyway.
@lru_cache(maxsize=16)
def _compile(pattern: str) -> Pattern:
    options = re2.Options()
    options.log_errors = False
    try:
        # Bytes throughout: text would be encoded again at each search.
        compiled: Pattern = re2.compile(pattern.encode(), options)
    except re2.error as error:
        raise PatternError(_message(error.args[0].decode("utf-8", "replace"))) from None
    return compiled


def _refuse_foreign(pattern: str) -> None:
    """Refuse what RE2 takes and Go's dialect has not: `\\C`, and group names beyond ASCII."""
    at, in_brackets = 0, False
    while at < len(pattern):
        if pattern.startswith("\\Q", at) and not in_brackets:
            end = pattern.find("\\E", at)
            at = len(pattern) if end < 0 else end + 2
        elif pattern.startswith("\\C", at):
            raise PatternError("error parsing regexp: invalid escape sequence: `\\C`")
        elif pattern[at] == "\\":
            at += 2
        elif in_brackets:
            # The bracket that closes `[:alpha:]` closes nothing else.
            end = pattern.find(":]", at, at + 16) if pattern.startswith("[:", at) else -1
            in_brackets = pattern[at] != "]"
            at = at + 1 if end < 0 else end + 2
        elif pattern[at] == "[":
            in_brackets = True
            at += 1 + pattern.startswith("^", at + 1)
            at += pattern.startswith("]", at)
        else:
            _check_group_name(pattern, at)
            at += 1


def _check_group_name(pattern: str, at: int) -> None:
    if not pattern.startswith(("(?P<", "(?<"), at):
        return
    end = pattern.find(">", at, at + _LONGEST_NAME)
    if end > 0 and not pattern[at:end].isascii():
        shown = pattern[at : end + 1]
        raise PatternError(f"error parsing regexp: invalid named capture: `{shown}`")


def _message(text: str) -> str:
    problem, _, fragment = text.partition(": ")
    message = f"error parsing regexp: {_MESSAGES.get(problem, problem)}"
    return f"{message}: `{fragment}`" if fragment else f"{message}: ``"


def search(pattern: Pattern, text: str | bytes) -> bool:
    """Whether a pattern is found anywhere in a text; an invalid byte counts as U+FFFD."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    return pattern.search(replace_broken(text).encode()) is not None

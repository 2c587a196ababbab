"""Text to tokens (spec section 2)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .errors import ExprSyntaxError
from .literals import read_quoted, read_raw
from .text import WHITE_SPACE, is_identifier_char, quote

__all__ = [
    "BRACKET",
    "BYTES",
    "EOF",
    "IDENTIFIER",
    "NUMBER",
    "OPERATOR",
    "STRING",
    "Token",
    "tokenize",
]

IDENTIFIER = "Identifier"
NUMBER = "Number"
STRING = "String"
BYTES = "Bytes"
OPERATOR = "Operator"
BRACKET = "Bracket"
EOF = "EOF"

_WORD_OPERATORS = frozenset(
    ["in", "or", "and", "not", "matches", "contains", "startsWith", "endsWith", "let", "if", "else"]
)

_SKIP = re.compile(rf"(?:[{WHITE_SPACE}]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
# A `.` that begins a range is not part of a number: `1..3`.
_NUMBER = re.compile(
    r"0[xX][0-9a-fA-F_]*(?:\.(?!\.)[0-9a-fA-F_]*)?"
    r"|0[oO][0-7_]*(?:\.(?!\.)[0-7_]*)?(?:[eE][+-]?[0-7_]*)?"
    r"|0[bB][01_]*(?:\.(?!\.)[01_]*)?(?:[eE][+-]?[01_]*)?"
    r"|(?:[0-9][0-9_]*(?:\.(?!\.)[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9_]*)?"
)
_OPERATOR = re.compile(r"\|\|?|\?[?.]?|::?|\.\.?|[&!=*<>][&=*]?|[-+/%^,;]|#+")


class Token(NamedTuple):
    """One token; `offset` counts code points from the start of the source."""

    kind: str
    value: str
    offset: int
    payload: bytes = b""
    """The value of a bytes literal, whose `value` is only its text for error messages."""

    def __str__(self) -> str:
        return f"{self.kind}({quote(self.value)})" if self.value else self.kind


def is_blank(source: str) -> bool:
    """Whether a source is nothing but white space; a comment is not blank."""
    return not source.strip(WHITE_SPACE)


def tokenize(source: str) -> Iterator[Token]:
    """The tokens of a source, an EOF token last.

    Raises ExprSyntaxError, when it gets there, at a character that begins no token, and for
    malformed numbers and literals: of two errors the parser reports the one that comes first.
    """
    offset = _skip(source, 0)
    while offset < len(source):
        token, offset = _read(source, offset)
        yield token
        offset = _skip(source, offset)
    # The end of the input is reported at its last character.
    yield Token(EOF, "", max(len(source) - 1, 0))


def _skip(source: str, offset: int) -> int:
    found = _SKIP.match(source, offset)
    end = found.end() if found else offset
    if source.startswith("/*", end):
        raise ExprSyntaxError("unclosed comment", source, len(source))
    return end


def _read(source: str, start: int) -> tuple[Token, int]:
    """The token that starts at an offset, and the offset after it."""
    char = source[start]
    if char in "\"'":
        text, end = read_quoted(source, start)
        return Token(STRING, text, start), end
    if char in "bB" and source[start + 1 : start + 2] in ('"', "'"):
        text, end = read_quoted(source, start + 1, as_bytes=True)
        value = text.encode("latin-1")
        return Token(BYTES, value.decode("utf-8", "replace"), start, value), end
    if char == "`":
        text, end = read_raw(source, start)
        return Token(STRING, text, start), end
    if number := _NUMBER.match(source, start):
        return _number(source, start, number.end())
    if is_identifier_char(char):
        return _word(source, start)
    if char in "()[]{}":
        return Token(BRACKET, char, start), start + 1
    if operator := _OPERATOR.match(source, start):
        return Token(OPERATOR, operator.group(), start), operator.end()
    shown = f" '{char}'" if char.isprintable() else ""
    raise ExprSyntaxError(f"unrecognized character: U+{ord(char):04X}{shown}", source, start)


def _number(source: str, start: int, end: int) -> tuple[Token, int]:
    if end < len(source) and is_identifier_char(source[end]):
        text = quote(source[start : end + 1])
        raise ExprSyntaxError(f"bad number syntax: {text}", source, end)
    return Token(NUMBER, source[start:end], start), end


def _word(source: str, start: int) -> tuple[Token, int]:
    end = start + 1
    while end < len(source) and is_identifier_char(source[end]):
        end += 1
    word = source[start:end]
    return Token(OPERATOR if word in _WORD_OPERATORS else IDENTIFIER, word, start), end

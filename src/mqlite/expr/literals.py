"""The values of number and string literals (spec 2.6 to 2.9)."""

from __future__ import annotations

from math import isinf

from .errors import ExprSyntaxError
from .integers import MAX_INT
from .text import quote

__all__ = ["number_value", "read_quoted", "read_raw"]

_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_BASES = {"0x": (16, "hex"), "0o": (8, "octal"), "0b": (2, "binary")}


def number_value(text: str) -> int | float:
    """The value of a number token.

    Raises ValueError, with the reference's message, if the token does not convert.
    """
    digits = text.replace("_", "")
    prefix = digits[:2].lower()
    if prefix != "0x" and any(mark in digits for mark in ".eE"):
        return _float_value(digits)
    base, name = _BASES.get(prefix, (10, "integer"))
    try:
        value = int(digits, base)
    except ValueError:
        if digits.isdecimal():
            # Python refuses to convert thousands of decimal digits.
            raise _unconvertible(name, "ParseInt", digits, "value out of range") from None
        raise _unconvertible(name, "ParseInt", digits, "invalid syntax") from None
    if value > MAX_INT:
        raise _unconvertible(name, "ParseInt", digits, "value out of range")
    return value


def _float_value(digits: str) -> float:
    try:
        value = float(digits)
    except ValueError:
        raise _unconvertible("float", "ParseFloat", digits, "invalid syntax") from None
    if isinf(value):
        raise _unconvertible("float", "ParseFloat", digits, "value out of range")
    return value


def _unconvertible(name: str, function: str, digits: str, problem: str) -> ValueError:
    return ValueError(
        f"invalid {name} literal: strconv.{function}: parsing {quote(digits)}: {problem}"
    )


def read_raw(source: str, start: int) -> tuple[str, int]:
    """The value of the raw string that opens at an offset, and the offset after it."""
    end = start + 1
    while True:
        end = source.find("`", end)
        if end < 0:
            raise ExprSyntaxError("literal not terminated", source, len(source))
        if not source.startswith("``", end):
            return source[start + 1 : end].replace("``", "`"), end + 1
        end += 2


def read_quoted(source: str, start: int, *, as_bytes: bool = False) -> tuple[str, int]:
    """The value of the quoted literal whose quote is at an offset, and the offset after it.

    A bytes literal comes back with one character per byte.
    """
    return _Quoted(source, start, as_bytes).read()


class _Quoted:
    """Reads one quoted literal."""

    def __init__(self, source: str, start: int, as_bytes: bool) -> None:
        self.source = source
        self.quote = source[start]
        self.at = start + 1
        self.as_bytes = as_bytes
        # An escape that is well formed but names no value is reported only once the whole
        # literal has been read, at its closing quote.
        self.meaningless = False

    def read(self) -> tuple[str, int]:
        parts: list[str] = []
        while (char := self.peek()) != self.quote:
            if char in ("", "\n"):
                raise ExprSyntaxError("literal not terminated", self.source, self.at)
            self.at += 1
            parts.append(self.escape() if char == "\\" else self.plain(char))
        if self.meaningless:
            raise ExprSyntaxError("unable to unescape string", self.source, self.at)
        return "".join(parts), self.at + 1

    def peek(self) -> str:
        return self.source[self.at : self.at + 1]

    def plain(self, char: str) -> str:
        if char == "\r":
            return "\n"
        return char.encode().decode("latin-1") if self.as_bytes else char

    def escape(self) -> str:
        char = self.peek()
        if char and char in _SIMPLE:
            self.at += 1
            return _SIMPLE[char]
        if char == self.quote:
            self.at += 1
            return char
        if char and char in "01234567":
            return self.code(self.digits(3, 8), limit=0xFF)
        if char and char in "xuU":
            self.at += 1
            if char == "u" and self.peek() == "{":
                return self.code(self.braced(), limit=0x10FFFF, names_byte=False)
            value = self.digits(_HEX_DIGITS[char], 16)
            return self.code(value, limit=0x10FFFF, names_byte=char == "x")
        raise self.invalid(self.at)

    def digits(self, count: int, base: int) -> int:
        text = ""
        while len(text) < count:
            char = self.peek()
            if not _is_digit(char, base):
                raise self.invalid(self.at)
            text += char
            self.at += 1
        return int(text, base)

    def braced(self) -> int:
        self.at += 1
        text = ""
        while (char := self.peek()) != "}":
            if not _is_digit(char, 16) or len(text) == 6:
                # The reference reports the character before the offending one here.
                raise self.invalid(self.at - 1)
            text += char
            self.at += 1
        if not text:
            raise self.invalid(self.at - 1)
        self.at += 1
        return int(text, 16)

    def code(self, value: int, *, limit: int, names_byte: bool = True) -> str:
        if value > limit or (self.as_bytes and not names_byte):
            self.meaningless = True
            return ""
        return "\ufffd" if 0xD800 <= value <= 0xDFFF else chr(value)

    def invalid(self, offset: int) -> ExprSyntaxError:
        return ExprSyntaxError("invalid char escape", self.source, offset)


def _is_digit(char: str, base: int) -> bool:
    return char != "" and char in "0123456789abcdefABCDEF" and int(char, 16) < base

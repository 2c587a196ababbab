"""Strings as the language has them: bytes that are normally UTF-8.

A string is a Python `str` in which a byte that is not part of valid UTF-8 is held as one
surrogate, the way `surrogateescape` does it. `joined` keeps that form canonical.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = [
    "LONE_SURROGATE",
    "WHITE_SPACE",
    "byte_offset",
    "from_bytes",
    "is_broken",
    "is_identifier_char",
    "joined",
    "quote",
    "replace_broken",
    "same_domain",
    "to_bytes",
]

# Unicode White_Space, spelled out: `str.isspace` also takes the separators U+001C to U+001F.
WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)

LONE_SURROGATE = re.compile("[\ud800-\udfff]")

_QUOTED = {
    '"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f",
    "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
}  # fmt: skip


def to_bytes(text: str) -> bytes:
    """The bytes a string stands for."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # Other surrogates stand for no byte; whoever gave us the string did not know better.
        return replace_broken(text).encode()


def from_bytes(data: bytes) -> str:
    """The string that stands for some bytes."""
    return data.decode("utf-8", "surrogateescape")


def joined(text: str) -> str:
    """Make a string canonical that was put together from others.

    Two halves of a character, each broken on its own, become the character again.
    """
    return from_bytes(to_bytes(text)) if is_broken(text) else text


def replace_broken(text: str) -> str:
    """A string with each invalid byte turned into U+FFFD."""
    return text if text.isascii() else LONE_SURROGATE.sub("\ufffd", text)


def is_broken(text: str) -> bool:
    """Whether a string holds bytes that are not valid UTF-8."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def same_domain(*texts: str) -> Any:
    """Strings in a form in which `str` or `bytes` methods find what is there bytewise.

    In valid UTF-8 a part is found at whole characters only, so the strings themselves will do. Where
    one is broken, all of them are turned into bytes.
    """
    if any(map(is_broken, texts)):
        return tuple(map(to_bytes, texts))
    return texts


def byte_offset(text: str, index: int) -> int:
    """The offset in bytes of a character."""
    return index if text.isascii() else len(to_bytes(text[:index]))


def is_identifier_char(char: str) -> bool:
    """Whether a character may be in an identifier: a letter (L*), a decimal digit (Nd), _ or $."""
    return char.isalpha() or char.isdecimal() or char in "_$"


def quote(text: str) -> str:
    """A string in double quotes, escaped as error messages show it."""
    parts: list[str] = []
    for char in text:
        if char in _QUOTED:
            parts.append(_QUOTED[char])
        elif char.isprintable():
            parts.append(char)
        elif ord(char) < 0x80:
            parts.append(f"\\x{ord(char):02x}")
        elif 0xDC80 <= ord(char) <= 0xDCFF:
            parts.append(f"\\x{ord(char) - 0xDC00:02x}")
        else:
            parts.append(f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}")
    return f'"{"".join(parts)}"'

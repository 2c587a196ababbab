"""A JSON reader without recursion that says what is wrong the way the reference does."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from mqlite.expr.errors import Fault

__all__ = ["read_strictly"]

_MAX_DEPTH = 10_000
_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"?')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)?(?:(?<=[0-9])\.[0-9]*)?(?:(?<=[0-9])[eE][+-]?[0-9]*)?")
_WORDS = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}


def read_strictly(text: str) -> Any:
    """The value of a JSON text; raises Fault if it is none."""
    reader = _Reader(text)
    value = reader.read()
    reader.space()
    if reader.at < len(text):
        raise reader.unexpected("after top-level value")
    return value


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def read(self) -> Any:
        """One value; the containers that are still open are on a list of their own."""
        # An open container, and the key its next value belongs to.
        open_containers: list[tuple[Any, str]] = []
        while True:
            value = self.value()
            if isinstance(value, (list, dict)):
                if len(open_containers) >= _MAX_DEPTH:
                    raise Fault("exceeded max depth")
                key = self.enter(value)
                if key is not None:
                    open_containers.append((value, key))
                    continue
            while open_containers:
                container, key = open_containers.pop()
                following = self.store(container, key, value)
                if following is not None:
                    open_containers.append((container, following))
                    break
                value = container
            else:
                return value

    def enter(self, container: Any) -> str | None:
        """After an opening bracket: the key of the first value, or None if there is none."""
        is_list = isinstance(container, list)
        if self.peek() == ("]" if is_list else "}"):
            self.at += 1
            return None
        return "" if is_list else self.key()

    def store(self, container: Any, key: str, value: Any) -> str | None:
        """Put a value into its container; the next value's key, or None at the end."""
        if isinstance(container, list):
            container.append(value)
            return "" if self.continues("]", "after array element") else None
        container[key] = value
        return self.key() if self.continues("}", "after object key:value pair") else None

    def continues(self, closing: str, where: str) -> bool:
        char = self.peek()
        if char not in (",", closing):
            raise self.unexpected(where)
        self.at += 1
        return char == ","

    def key(self) -> str:
        if self.peek() != '"':
            raise self.unexpected("looking for beginning of object key string")
        key = self.string()
        if self.peek() != ":":
            raise self.unexpected("after object key")
        self.at += 1
        return key

    def value(self) -> Any:
        """A scalar, or an empty container just opened."""
        char = self.peek()
        if char in ("[", "{"):
            self.at += 1
            return [] if char == "[" else {}
        if char == '"':
            return self.string()
        if char in _WORDS:
            return self.word(*_WORDS[char])
        if char and char in "-0123456789":
            return self.number()
        raise self.unexpected("looking for beginning of value")

    def string(self) -> str:
        found = _STRING.match(self.text, self.at)
        start, self.at = self.at, found.end() if found else self.at
        if self.at - start < 2 or self.text[self.at - 1] != '"':
            raise self.bad_string()
        try:
            value: str = json.loads(self.text[start : self.at])
        except ValueError:
            raise self.bad_string() from None
        return value

    def bad_string(self) -> Fault:
        if self.text[self.at : self.at + 1] != "\\":
            return self.unexpected("in string literal")
        self.at += 1
        if self.text[self.at : self.at + 1] != "u":
            return self.unexpected("in string escape code")
        self.at += 1
        while self.text[self.at : self.at + 1] in tuple("0123456789abcdefABCDEF"):
            self.at += 1
        return self.unexpected("in \\u hexadecimal character escape")

    def number(self) -> float:
        found = _NUMBER.match(self.text, self.at)
        digits = found.group() if found else ""
        self.at += len(digits)
        if digits == "-":
            raise self.unexpected("in numeric literal")
        if digits.endswith("."):
            raise self.unexpected("after decimal point in numeric literal")
        if digits[-1] in "eE+-":
            raise self.unexpected("in exponent of numeric literal")
        value = float(digits)
        if math.isinf(value):
            raise Fault(f"json: cannot unmarshal number {digits} into Go value of type float64")
        return value

    def word(self, word: str, value: Any) -> Any:
        for index, char in enumerate(word):
            if self.text[self.at : self.at + 1] != char:
                raise self.unexpected(f"in literal {word} (expecting {word[index]!r})")
            self.at += 1
        return value

    def space(self) -> None:
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def peek(self) -> str:
        self.space()
        return self.text[self.at : self.at + 1]

    def unexpected(self, where: str) -> Fault:
        char = self.text[self.at : self.at + 1]
        if not char:
            return Fault("unexpected end of JSON input")
        shown = "'\"'" if char == '"' else repr(char)
        return Fault(f"invalid character {shown} {where}")

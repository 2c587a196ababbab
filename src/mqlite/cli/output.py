"""The two forms of a result: lines for people and shells, JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import msgspec

from mqlite.cli import streams
from mqlite.model import MessageData

T = TypeVar("T")

FORMS: Final = ("text", "json")

_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
_PEEK_ONLY: Final = ("state", "visible_at_ms", "expires_at_ms")


class Output:
    """Prints results in one of `FORMS`."""

    def __init__(self, form: str) -> None:
        self.json = form == "json"

    def done(self, **facts: str | int | list[int]) -> None:
        """What a mutation did: `ok: key=value ...`, or an object of the same keys."""
        if self.json:
            self.document(facts)
        else:
            pairs = " ".join(f"{key}={shown(value)}" for key, value in facts.items())
            self.ok(pairs)

    def ok(self, text: str) -> None:
        self.line(f"{streams.painted('ok:', streams.GREEN, sys.stdout)} {text}")

    def line(self, text: str) -> None:
        streams.write(text + "\n")

    def document(self, value: Any) -> None:
        self.line(_pretty(value))

    def rows(self, values: Iterable[T], line: Callable[[T], str], none: str) -> None:
        """A listing: an array, or a line each, or `none`. Written one by one."""
        separator = "[\n  "
        empty = True
        for value in values:
            if self.json:
                streams.write(separator + _pretty(value).replace("\n", "\n  "))
                separator = ",\n  "
            else:
                self.line(line(value))
            empty = False
        if self.json:
            self.line("[]" if empty else "\n]")
        elif empty:
            self.line(none)


class Progress:
    """A line on a terminal's standard error that is gone when the work is done; nothing
    anywhere else."""

    def __init__(self) -> None:
        self._on = sys.stderr.isatty()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.show("")

    def show(self, text: str) -> None:
        if self._on:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def received(message: MessageData, *, lock_token: bool) -> MessageData:
    """The wire's message object as a receive reports it, without what only peek shows."""
    hidden = _PEEK_ONLY if lock_token else (*_PEEK_ONLY, "lock_token")
    fields = (name for name in MessageData.__struct_fields__ if name not in hidden)
    return MessageData(**{name: getattr(message, name) for name in fields})


def received_line(message: MessageData) -> str:
    optional = {
        "message-id": message.message_id,
        "group": message.group_id,
        "reply-to": message.reply_to,
        "lock-token": message.lock_token,
    }
    return (
        f"seq={message.seq_number} deliveries={message.delivery_count}{_named(optional)}"
        f" body={quoted(message.body)}"
    )


def peeked_line(message: MessageData) -> str:
    why = {"reason": message.dead_letter_reason, "detail": message.dead_letter_description}
    return (
        f"seq={message.seq_number} state={message.state}"
        f" deliveries={message.delivery_count} body={quoted(message.body)}{_named(why)}"
    )


def _named(values: dict[str, str]) -> str:
    return "".join(f" {key}={shown(value)}" for key, value in values.items() if value)


def shown(value: str | int | list[int]) -> str:
    """A value inside a line, quoted where it would break the line or a terminal."""
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    plain = text.isprintable() and " " not in text and '"' not in text
    return text if plain else quoted(text.encode(errors="surrogateescape"))


def quoted(body: bytes) -> str:
    """`body` in double quotes with Go's escapes, so that any bytes stay one safe line."""
    return '"' + "".join(map(_escaped, body.decode(errors="surrogateescape"))) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _pretty(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()

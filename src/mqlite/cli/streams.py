"""The standard streams of the command: written with care, never with a traceback."""

from __future__ import annotations

import io
import os
import stat
import sys
from contextlib import suppress
from typing import Final, TextIO

RED: Final = 31
GREEN: Final = 32
YELLOW: Final = 33

_STREAMS: Final = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


class CommandError(Exception):
    """A command failed; the text is what the user is told, with `detail` in lines below."""

    def __init__(self, text: str, detail: str = "") -> None:
        super().__init__(text)
        self.detail = detail


class OutputLost(CommandError):
    """Standard output took less than it was given."""


def prepare() -> None:
    """Make the standard streams usable whatever the parent process left of them.

    A closed descriptor is opened on the null device, so that no database file can land on
    it and be printed into.
    """
    for descriptor, (name, mode) in enumerate(_STREAMS):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, mode, closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")


def deliverable() -> bool:
    """Whether what is printed can reach anyone: false for the null device, which is also
    what `prepare` puts in the place of a closed standard output."""
    try:
        out = os.fstat(sys.stdout.fileno())
    except io.UnsupportedOperation:
        return True
    if os.name == "nt":
        return stat.S_ISREG(out.st_mode) or stat.S_ISFIFO(out.st_mode) or sys.stdout.isatty()
    return not (stat.S_ISCHR(out.st_mode) and out.st_rdev == os.stat(os.devnull).st_rdev)


def write(text: str) -> None:
    """Print `text` as it is. Raises OutputLost."""
    try:
        sys.stdout.write(text)
    except OSError as error:
        raise OutputLost(_undelivered(error)) from None


def flush() -> None:
    """Hand everything printed so far to the operating system. Raises OutputLost."""
    try:
        sys.stdout.flush()
    except OSError as error:
        raise OutputLost(_undelivered(error)) from None


def discard_output() -> None:
    """Drop what standard output still buffers, which would fail again at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def note(text: str) -> None:
    """Print `text` on standard error, where there is one that takes it."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def tell(kind: str, message: str, color: int) -> None:
    """Print `kind: message` on standard error, as one line whatever the message holds."""
    note(f"{painted(f'{kind}:', color, sys.stderr)} {_in_one_line(message)}")


def error(message: str, detail: str = "") -> None:
    tell("error", message, RED)
    if detail:
        note("\n".join(map(_in_one_line, detail.split("\n"))))


def warn(message: str) -> None:
    tell("warning", message, YELLOW)


def _in_one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def painted(text: str, color: int, stream: TextIO) -> str:
    """`text` in a colour, on a terminal that may have one."""
    if not stream.isatty() or "NO_COLOR" in os.environ:
        return text
    return f"\x1b[{color}m{text}\x1b[0m"


def _undelivered(error: OSError) -> str:
    return f"cannot write to standard output: {error.strerror}"

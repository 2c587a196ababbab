"""The request log: one structured record per request, written in batches.

A `logging` record per request costs a third of a broker's rate, so records are collected
and reach `logging` at the latest after 100 ms, from a thread of their own: a slow handler
holds up no request. Never holds a body, a property or a credential.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
import weakref
from collections import deque
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Final

import msgspec

LOGGER: Final = logging.getLogger("mqlite.requests")
_DELAY_SECONDS: Final = 0.1
_MAX_PENDING: Final = 20_000
_MAX_VALUE: Final = 256
_PLAIN: Final = re.compile(r"[\w./:@*+~-]+", re.ASCII)
_RPC_PREFIX: Final = "/mqlite.v1."

Notes = tuple[str | int, ...]
"""What a handler tells about its request: names and values in turn."""


class RequestRecord(msgspec.Struct, frozen=True, gc=False):
    """One answered request. `time` is in epoch seconds."""

    time: float
    level: int
    path: str
    status: int
    notes: Notes
    seconds: float

    def __str__(self) -> str:
        notes = tuple([_cut(note) if isinstance(note, str) else note for note in self.notes])
        about = _about(_cut(self.path.removeprefix(_RPC_PREFIX)), self.status, notes)
        return f"{about} dur={duration_text(self.seconds)}"


class Batch(list[RequestRecord]):
    """Records of one level; as text, a line each."""

    def __str__(self) -> str:
        return "\n".join(map(str, self))


class RequestLog:
    """Collects records. Safe to use from several threads and event loops."""

    def __init__(self, *, max_pending: int = _MAX_PENDING) -> None:
        self._max_pending = max_pending
        self._pending: deque[RequestRecord] = deque()
        self._armed = False
        self._lost = 0
        weakref.finalize(self, _write, self._pending)

    def add(self, path: str, status: int, notes: Notes, seconds: float, quiet: bool) -> None:
        """`quiet` marks a success that is no news."""
        level = logging.INFO if status < 400 and not quiet else _level(status)
        if not LOGGER.isEnabledFor(level):
            return
        if len(self._pending) >= self._max_pending:
            self._lost += 1
            return
        self._pending.append(RequestRecord(time.time(), level, path, status, notes, seconds))
        if not self._armed:
            self._arm()

    def flush(self) -> None:
        """Write what is pending."""
        _write(self._pending)
        lost, self._lost = self._lost, 0
        if lost:
            LOGGER.warning("%d request records were dropped: the log could not keep up", lost)

    def _arm(self) -> None:
        self._armed = True
        timer = threading.Timer(_DELAY_SECONDS, self._elapsed)
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError:  # no more threads: the next record tries again
            self._armed = False

    def _elapsed(self) -> None:
        try:
            self.flush()
        finally:  # whatever a handler raised
            self._armed = False
            if self._pending:
                self._arm()


class LineFormatter(logging.Formatter):
    """Log lines with millisecond time stamps, a line of its own for every request."""

    _COLORS: Final = {
        logging.DEBUG: "\x1b[2m",
        logging.WARNING: "\x1b[33m",
        logging.ERROR: "\x1b[31m",
        logging.CRITICAL: "\x1b[31m",
    }

    def __init__(self, *, color: bool = False) -> None:
        super().__init__()
        self._color = color

    def format(self, record: logging.LogRecord) -> str:
        requests: list[RequestRecord] | None = getattr(record, "requests", None)
        if requests is None:
            return self._line(record.created, record.levelno, super().format(record))
        return "\n".join([self._line(one.time, one.level, str(one)) for one in requests])

    def _line(self, seconds: float, level: int, text: str) -> str:
        millis = int(seconds * 1000)
        stamp = f"{_second(millis // 1000)}.{millis % 1000:03}"
        line = f"{stamp} {logging.getLevelName(level):<7} {text}"
        color = self._COLORS.get(level) if self._color else None
        return f"{color}{line}\x1b[0m" if color else line


def duration_text(seconds: float) -> str:
    """Go's notation, rounded to microseconds: `350µs`, `1.234ms`, `2.5s`, `1m0.5s`."""
    micros = round(seconds * 1_000_000)
    if micros < 1000:
        return f"{micros}µs" if micros else "0s"
    if micros < 1_000_000:
        return f"{micros / 1000:.6g}ms"
    minutes, rest = divmod(micros, 60_000_000)
    text = f"{rest / 1_000_000:.6f}".rstrip("0").rstrip(".")
    return f"{minutes}m{text}s" if minutes else f"{text}s"


def _level(status: int) -> int:
    """The level of what is not plain success."""
    if status >= 500:
        return logging.ERROR
    return logging.WARNING if status >= 400 else logging.DEBUG


def _cut(value: str) -> str:
    return value if len(value) <= _MAX_VALUE else value[:_MAX_VALUE] + "…"


@lru_cache(maxsize=1024)
def _about(path: str, status: int, notes: Notes) -> str:
    """The part of a record that a busy broker says again and again."""
    text = f"{_shown(path)} status={status}"
    for name, value in zip(notes[::2], notes[1::2], strict=True):
        text += f" {name}={_shown(value) if isinstance(value, str) else value}"
    return text


def _shown(value: str) -> str:
    """Quoted unless plain: names come from outside and must not forge a line."""
    return value if _PLAIN.fullmatch(value) else json.dumps(value)


@lru_cache(maxsize=2)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def _write(pending: deque[RequestRecord]) -> None:
    taken: list[RequestRecord] = []
    try:
        while True:
            taken.append(pending.popleft())
    except IndexError:
        pass
    for level, records in groupby(taken, key=attrgetter("level")):
        batch = Batch(records)
        LOGGER.log(level, "%s", batch, extra={"requests": batch})

"""The private diagnostic log: failures and recoveries in a file of their own.

A JSON object a line. The file is readable by its owner only, is added to over restarts,
and has each record on the disk before the next is looked at. Off the threads that fail:
the disk may be what they fail for.
"""

from __future__ import annotations

import logging
import os
import queue
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path
from typing import Any, Final

import msgspec

from mqlite.errors import InvalidArgument
from mqlite.observation.reporting import ATTRIBUTE

MAX_BYTES: Final = 4 * 1024 * 1024
ARCHIVES: Final = 3
_MODE: Final = 0o600
_LOGGER: Final = logging.getLogger("mqlite.diagnostics")


class RotatingFile:
    """Adds lines to a file. Before it would grow over `MAX_BYTES` it becomes archive `.1`,
    what was `.1` becomes `.2`, and so on. Where somebody else moves it away, or deletes it,
    a new one is begun."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self._path = path
        self._torn = False
        self._file = self._opened()

    def write(self, line: bytes) -> None:
        """Add the line; it is on the disk when this returns. Raises OSError, and then goes
        on where it can the next time."""
        self._follow()
        size = os.fstat(self._file).st_size
        if size and size + len(line) > MAX_BYTES:
            self._rotate()
        if self._torn:
            line = b"\n" + line
        written = os.write(self._file, line)
        self._torn = written < len(line)
        if self._torn:
            raise OSError(f"only {written} of {len(line)} bytes could be written")
        os.fsync(self._file)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _follow(self) -> None:
        """Have the file open that has the name now: a tool that rotates logs, or another
        process that keeps the same one, may have moved ours away."""
        if self._file >= 0 and not self._is_named():
            self.close()
        if self._file < 0:
            self._file = self._opened()

    def _is_named(self) -> bool:
        try:
            named = os.stat(self._path)
        except FileNotFoundError:
            return False
        return os.path.samestat(named, os.fstat(self._file))

    def _opened(self) -> int:
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _MODE)
        try:
            os.chmod(self._path, _MODE)  # it may have been there with another
        except OSError:
            os.close(file)
            raise
        return file

    def _rotate(self) -> None:
        self.close()
        for number in range(ARCHIVES, 0, -1):
            older = self._archive(number)
            newer = self._archive(number - 1) if number > 1 else self._path
            with suppress(FileNotFoundError):
                newer.replace(older)
        self._file = self._opened()

    def _archive(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


class DiagnosticHandler(logging.Handler):
    """Keeps the records that have a `diagnostic` attribute, and those only. What cannot be
    written is warned about once, until writing works again."""

    def __init__(self, file: RotatingFile) -> None:
        super().__init__()
        self.file = file
        self._failing = False

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = getattr(record, ATTRIBUTE)
        line = msgspec.json.encode(fields) + b"\n"
        try:
            self.file.write(line)
        except OSError as error:
            if not self._failing:
                _LOGGER.warning("the diagnostic log cannot be written: %s", error)
            self._failing = True
        else:
            self._failing = False


@contextmanager
def diagnostic_log(path: str, logger: logging.Logger) -> Iterator[None]:
    """Keep the diagnostic records of a logger in the file at `path`, for a `with` block.

    Raises InvalidArgument for a path that cannot be used: a folder that does not exist, a
    file that cannot be written.
    """
    try:
        file = RotatingFile(_checked(Path(path)))
    except OSError as error:
        raise InvalidArgument(
            f"the diagnostic log {path!r} cannot be used: {error.strerror or error}"
        ) from None
    waiting: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    entrance = _Entrance(waiting)
    listener = QueueListener(waiting, DiagnosticHandler(file))
    listener.start()
    logger.addHandler(entrance)
    try:
        yield
    finally:
        logger.removeHandler(entrance)
        listener.stop()
        file.close()


class _Entrance(QueueHandler):
    """Passes diagnostic records on to the thread that writes them."""

    def __init__(self, waiting: queue.SimpleQueue[logging.LogRecord]) -> None:
        super().__init__(waiting)
        self.addFilter(lambda record: hasattr(record, ATTRIBUTE))


def _checked(path: Path) -> Path:
    """The file itself: archives lie beside it, not beside a link to it."""
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise IsADirectoryError(None, "it is not a file")
    return path

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
from itertools import pairwise
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path
from typing import Any, Final

import msgspec

from mqlite.errors import InvalidArgument
from mqlite.observation.reporting import ATTRIBUTE
from mqlite.stores.sqlite.location import parse_location

MAX_BYTES: Final = 4 * 1024 * 1024
ARCHIVES: Final = 3
_MODE: Final = 0o600
_BEGINNING: Final = b'{"event":'
"""Of every record."""

_ACCEPTED: Final = "give a new or empty file, or an earlier diagnostic log"
_PARTS: Final = ("", "-wal", "-shm", "-journal", ".lock")
"""The files of a database, by what follows its name."""

_LOGGER: Final = logging.getLogger("mqlite.diagnostics")


class RotatingFile:
    """Adds lines to a file. Before it would grow over `MAX_BYTES` it becomes archive `.1`,
    what was `.1` becomes `.2`, and so on. Where somebody else moves it away, or deletes it,
    a new one is begun."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self.path = path
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
            named = os.stat(self.path)
        except FileNotFoundError:
            return False
        return os.path.samestat(named, os.fstat(self._file))

    def _opened(self) -> int:
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _MODE)
        try:
            os.chmod(self.path, _MODE)  # it may have been there with another
        except OSError:
            os.close(file)
            raise
        return file

    def _rotate(self) -> None:
        self.close()
        for newer, older in reversed(list(pairwise(_files(self.path)))):
            with suppress(FileNotFoundError):
                newer.replace(older)
        self._file = self._opened()


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
                _LOGGER.warning(
                    "the diagnostic log %s cannot be written: %s", self.file.path, error
                )
            self._failing = True
        else:
            self._failing = False


@contextmanager
def diagnostic_log(
    path: str, logger: logging.Logger, *, database: str | os.PathLike[str] | None = None
) -> Iterator[None]:
    """Keep the diagnostic records of a logger in the file at `path`, for a `with` block.

    `database` is what the queue is opened with: none of its files is written to. Raises
    InvalidArgument for a path that cannot be used: a directory that does not exist, a file that
    cannot be written, one that holds something else, or that has an archive which does.
    """
    store = None if database is None else parse_location(database).path
    try:
        file = RotatingFile(_checked(path, store))
    except OSError as error:
        raise _refused(path, error.strerror or str(error)) from None
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


def _checked(path: str, database: Path | None) -> Path:
    """The file itself: archives lie beside it, not beside a link to it. Raises InvalidArgument,
    OSError, and has written nothing then."""
    real = Path(os.path.realpath(path))
    for file in _files(real):
        if database is not None and _is_part(file, database):
            raise _refused(path, f"{file} is a file of the database {database}")
        if file.exists() and not file.is_file():
            raise _refused(path, f"{file} is not a file")
        if file.exists() and not _holds_records(file):
            raise _refused(path, f"{file} holds something else")
    return real


def _files(path: Path) -> list[Path]:
    """The log and its archives, the newest first."""
    return [path, *(Path(f"{path}.{number + 1}") for number in range(ARCHIVES))]


def _is_part(file: Path, database: Path) -> bool:
    """Whether it is one of the database's files, or would become one."""
    parts = [Path(f"{database}{part}") for part in _PARTS]
    names = {os.path.normcase(part) for part in parts}
    return os.path.normcase(os.path.realpath(file)) in names or any(
        file.exists() and part.exists() and file.samefile(part) for part in parts
    )


def _holds_records(file: Path) -> bool:
    """Whether an existing file has nothing in it, or begins with a record, or with what a full
    disk took of one."""
    handle = os.open(file, os.O_RDONLY)
    if not _BEGINNING.startswith(os.read(handle, len(_BEGINNING))):
        return False  # not closed: that would end the locks of a SQLite that has it open here
    os.close(handle)
    return True


def _refused(path: str, why: str) -> InvalidArgument:
    return InvalidArgument(f"{path!r} cannot be the diagnostic log: {why}; {_ACCEPTED}")

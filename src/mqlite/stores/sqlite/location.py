"""What a user gives for a database, and which file it means."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote

from mqlite.errors import InvalidArgument

# Two characters at least: one is a drive letter.
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_MEMORY: Final = (":memory:", "file::memory:")
_ACCEPTED: Final = "use a path, 'file:./mq.db' or ':memory:'"
_CHANGES_MEANING: Final[tuple[str, ...]] = ("immutable", "vfs", "nolock")


@dataclass(frozen=True)
class Location:
    """A database: a file by its canonical path (absolute, symlinks resolved), or, with no
    path, memory that nobody else sees. `shown` is the path as the user gave it."""

    path: Path | None
    shown: str = ":memory:"

    def __str__(self) -> str:
        return self.shown

    @property
    def backend(self) -> str:
        """The kind of database, in the words of the contract."""
        return "memory" if self.path is None else "local file"

    def uri(self, **options: str | int) -> str:
        """The file as SQLite takes it with `uri=True`."""
        assert self.path is not None
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"{self.path.as_uri()}?{query}"


def bytes_on_disk(path: Path) -> int:
    """The size of a database file with its log and the log's index."""
    total = 0
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            total += path.with_name(path.name + suffix).stat().st_size
    return total


def parse_location(database: str | os.PathLike[str]) -> Location:
    """The database meant by a path, `file:` URI or `:memory:`. Raises InvalidArgument for
    everything else; a URL is never taken for a file name."""
    if not isinstance(database, str | os.PathLike):
        raise InvalidArgument(
            f"the database must be text or a path, got {type(database).__name__}: {_ACCEPTED}"
        )
    text = os.fspath(database)
    if not text or "\0" in text:
        raise InvalidArgument(f"{text!r} names no database: {_ACCEPTED}")
    if text.partition("?")[0] in _MEMORY:
        return Location(None)
    scheme = _SCHEME.match(text) if isinstance(database, str) else None
    if scheme is None:
        return _file(text)
    if scheme[1].lower() != "file":
        raise InvalidArgument(
            f"{scheme[1]}: databases are not available in this version: {_ACCEPTED}"
        )
    path, _, query = text[len("file:") :].partition("?")
    return _with_options(path.partition("#")[0], query.partition("#")[0])


def _with_options(path: str, query: str) -> Location:
    options = parse_qs(query, keep_blank_values=True)
    mode = options.get("mode", ["rwc"])[-1]
    if mode == "memory":
        return Location(None)
    refused = [name for name in _CHANGES_MEANING if name in options]
    if refused or mode not in ("rw", "rwc"):
        raise InvalidArgument(
            f"the option {(refused or ['mode=' + mode])[0]!r} cannot be used here"
        )
    if path.startswith("//"):
        host, slash, rest = path[2:].partition("/")
        if host not in ("", "localhost"):
            raise InvalidArgument(f"file://{host}/ names another machine: {_ACCEPTED}")
        path = slash + rest
    return _file(unquote(path))


def _file(text: str) -> Location:
    try:
        path = Path(os.path.realpath(text)) if text else None
        if path is None:
            raise InvalidArgument(f"{text!r} names no file: {_ACCEPTED}")
        if path.is_dir():
            example = os.path.join(text, "mq.db")
            raise InvalidArgument(
                f"{text!r} names no file but a directory: give a file in it, such as {example!r}"
            )
        if not path.parent.is_dir():
            raise InvalidArgument(f"the directory {str(path.parent)!r} does not exist")
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(f"{text!r} names no file: {error}") from error
    return Location(path, text)

"""Snapshots of a queue's file: taken while its owner works, verified, with a checksum."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from mqlite.errors import InvalidArgument, SchemaMismatch, Unavailable
from mqlite.stores.sqlite.failures import refuse
from mqlite.stores.sqlite.location import Location
from mqlite.stores.sqlite.preflight import check_file

_BUSY_S: Final = 10.0
_STEPS: Final = 100_000
"""SQLite's own steps, some milliseconds of them, between two looks for a signal."""
_SIDES: Final = ("-wal", "-journal")
_QUEUE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'mqlite_ledger'"


class Snapshot(NamedTuple):
    """A verified snapshot. `orphaned` names tables of the application with rows that refer to
    rows that are not there; the queue itself has none."""

    path: Path
    size: int
    sha256: str
    orphaned: list[str]


def take(source: Location, target: Location) -> Snapshot:
    """Write what is committed in `source` to the new file `target`, and its SHA-256 to a file
    beside it, in the form of `sha256sum`. Both can be read by their owner only.

    Takes no ownership, writes nothing to `source` and checkpoints nothing, so another
    process may own it and work on; its log only grows while the snapshot is read. `target`
    appears whole and verified, or not at all. Raises InvalidArgument, SchemaMismatch,
    Unavailable, and OSError.
    """
    found, made = _source(source), _target(target)
    check_file(source)
    with _partial(made) as partial:
        with _reading(source.uri(mode="ro"), str(found)) as connection:
            _require_queue(connection, found)
            connection.execute("VACUUM INTO ?", (str(partial),))
        orphaned = _examine(partial, f"the snapshot of {found}")
        _flush(partial)
        digest = _digest(partial)
        _publish(partial, made, digest)
    return Snapshot(made, made.stat().st_size, digest, orphaned)


def verify(location: Location) -> Snapshot:
    """Look at a snapshot that `take` wrote, and write nothing. Raises InvalidArgument,
    SchemaMismatch, Unavailable, and OSError."""
    path = _source(location)
    _refuse_sides(path)
    digest = _digest(path)
    if _recorded(path) != digest:
        raise Unavailable(f"{path} does not match {_checksum_file(path)}", reason="storage")
    check_file(location)
    return Snapshot(path, path.stat().st_size, digest, _examine(path, str(path)))


def _source(location: Location) -> Path:
    if location.path is None:
        raise InvalidArgument("a queue in memory has no file")
    if not location.path.exists():
        raise InvalidArgument(f"{location.path} does not exist")
    if not os.access(location.path, os.R_OK):
        raise InvalidArgument(f"{location.path} cannot be read by this user")
    return location.path


def _target(location: Location) -> Path:
    """The file to be made. Refuses what would be overwritten, or would be read as a part of
    another database."""
    path = location.path
    if path is None:
        raise InvalidArgument("a snapshot is a file: give a path")
    if "\\" in path.name or not path.name.isprintable():
        raise InvalidArgument(f"{path.name!r} has characters that a checksum file cannot name")
    if path.name.endswith(("-wal", "-shm", "-journal")):
        raise InvalidArgument(f"{path} is named like a part of another database")
    for taken in (path, _checksum_file(path)):
        if os.path.lexists(taken):  # a link that leads nowhere is there too
            raise InvalidArgument(f"{taken} exists: give a new name")
    _refuse_sides(path)
    return path


def _refuse_sides(path: Path) -> None:
    """What SQLite would take for changes to the snapshot must not lie beside it."""
    for suffix in _SIDES:
        side = path.with_name(path.name + suffix)
        if side.exists():
            raise InvalidArgument(
                f"{side} exists: with it beside, {path.name} would not be read as it was taken"
            )


@contextmanager
def _partial(target: Path) -> Iterator[Path]:
    """An empty file beside the target, gone at the end unless it has become the target."""
    handle, name = tempfile.mkstemp(".partial", f".{target.name}.", target.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
    finally:
        # On a full disk SQLite leaves its journal, too.
        for left in (partial, partial.with_name(partial.name + "-journal")):
            left.unlink(missing_ok=True)


@contextmanager
def _reading(uri: str, shown: str) -> Iterator[sqlite3.Connection]:
    """A connection that cannot write: it cannot checkpoint either, not even as the last one
    to close. Ctrl-C ends what it runs. Raises Unavailable."""
    try:
        with closing(
            sqlite3.connect(uri, uri=True, timeout=_BUSY_S, isolation_level=None)
        ) as connection:
            connection.set_progress_handler(lambda: False, _STEPS)
            yield connection
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
            raise KeyboardInterrupt from None
        refuse(error, shown)
        raise


def _require_queue(connection: sqlite3.Connection, path: Path) -> None:
    if not connection.execute(_QUEUE).fetchone():
        raise SchemaMismatch(f"{path} holds no queue")


def _examine(path: Path, shown: str) -> list[str]:
    """The tables that are not the queue's and have orphaned rows. Raises where the file is
    damaged, or the queue is. Makes no file beside it."""
    with _reading(Location(path).uri(mode="ro", immutable=1), shown) as connection:
        _require_queue(connection, path)
        (answer,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if answer != "ok":
            raise Unavailable(f"{shown} is damaged: {answer}", reason="storage")
        orphaned = {row[0] for row in connection.execute("PRAGMA foreign_key_check")}
    ours = sorted(table for table in orphaned if table.startswith("mqlite_"))
    if ours:
        raise Unavailable(
            f"{shown} has rows in {', '.join(ours)} that refer to rows that are not there",
            reason="storage",
        )
    return sorted(orphaned)


def _flush(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksum_file(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _recorded(path: Path) -> str:
    line = _checksum_file(path).read_text(encoding="utf-8", errors="replace")
    return line.partition(" ")[0]


def _publish(partial: Path, target: Path, digest: str) -> None:
    """Give a finished snapshot its name. The checksum goes first and is made by one only: a
    snapshot with its name always has it, and nobody else can be about to take that name."""
    checksum = _checksum_file(target)
    handle = os.open(checksum, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{digest}  {target.name}\n")
            file.flush()
            os.fsync(file.fileno())
        if os.path.lexists(target):
            raise InvalidArgument(f"{target} exists: give a new name")
        partial.rename(target)
    except BaseException:
        checksum.unlink()
        raise
    if os.name == "posix":
        _flush_directory(target.parent)


def _flush_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""Keeps the log and the file small: checkpoints, and pages given back to the disk."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from time import monotonic
from typing import Final

from mqlite.engine.steps import Pause, Plan
from mqlite.stores.sqlite.admission import WAIT_S
from mqlite.stores.sqlite.committer import Committer
from mqlite.stores.sqlite.connection import LOG_LIMIT_BYTES, pragma
from mqlite.stores.sqlite.failures import refuse

CHECKPOINT_BYTES: Final = LOG_LIMIT_BYTES + 1024 * 1024
"""The size of the log from which a checkpoint does not wait for a quiet moment. Above
what a reset leaves of the log, or a checkpoint would call for the next; not by more, because
all writers wait for as long as one takes."""
RECLAIM_PAGES: Final = 256

_CHUNK_PAGES: Final = 512
_RETRY_S: Final = 1.0


class Housekeeper:
    """Works on the writer connection of a file, in turns of its own, off every request's
    path; `second` is the connection that carries the checkpoints out."""

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        second: sqlite3.Connection,
        committer: Committer,
        exclusive: Callable[[float], AbstractContextManager[None]],
    ) -> None:
        self._log = Path(f"{path}-wal")
        self._connection = connection
        self._second = second
        self._committer = committer
        self._exclusive = exclusive
        self._seen = 0
        self._done = 0
        self._complete = True
        self._tried = float("-inf")

    def log_bytes(self) -> int:
        """The size of the log's file."""
        try:
            return os.stat(self._log).st_size
        except OSError:
            return 0

    def pressing(self) -> bool:
        """Whether the log is so large that a checkpoint should not wait. Where a foreign
        snapshot pins it, trying again at once would only hold up the writer."""
        rested = self._complete or monotonic() - self._tried >= _RETRY_S
        return rested and self.log_bytes() >= CHECKPOINT_BYTES

    def checkpoint(self) -> bool:
        """Copy the log into the file; False where a reader's snapshot kept a part of it.
        Raises Unavailable."""
        self._push_log()
        with self._exclusive(monotonic() + WAIT_S):
            # Nobody can write or reset the log while the writer connection holds this:
            # that is what makes a second connection safe on a SQLite with the WAL-reset bug.
            self._committer.begin(monotonic() + WAIT_S)
            commits = self._committer.commits
            try:
                row = self._second.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            except sqlite3.Error as error:
                refuse(error)
                raise
            finally:
                self._committer.rollback()
        self._tried = monotonic()
        self._complete = row[1] == row[2]  # frames in the log, frames copied
        if self._complete:
            self._done = commits
        return self._complete

    def _push_log(self) -> None:
        """Have the log on the disk, as a checkpoint must, before anybody waits for it
        (measured: writers wait 3 ms for a checkpoint in place of 12). What has come since, or
        cannot be pushed this way, is left to the checkpoint. (To close a file drops the locks
        the process holds on it; SQLite holds none on the log.)"""
        with suppress(OSError), open(self._log, "rb") as log:
            os.fsync(log.fileno())

    def checkpoint_if_due(self) -> Plan[None]:
        """A pass: when the log is large, or nothing has been written since the last look."""
        commits = self._committer.commits
        quiet = commits == self._seen
        self._seen = commits
        if commits != self._done and (quiet or self.pressing()):
            self.checkpoint()
        yield from ()

    def reclaim_if_due(self) -> Plan[None]:
        """A pass: give free pages back to the disk when there are many."""
        with self._exclusive(monotonic() + WAIT_S):
            free = pragma(self._connection, "freelist_count")
        if free >= RECLAIM_PAGES:
            yield from self.reclaim()

    def reclaim(self) -> Plan[None]:
        """Give every free page back to the disk, chunk by chunk, others in between."""
        yield Pause(0)
        self.checkpoint()
        before = -1
        while True:
            yield Pause(0)
            free = self._reclaim_chunk()
            if free in (0, before):
                break
            before = free
        yield Pause(0)
        self.checkpoint()

    def vacuum(self) -> None:
        """Rewrite the whole file. Raises Unavailable."""
        with self._exclusive(monotonic() + WAIT_S):
            try:
                self._connection.execute("VACUUM")
            except sqlite3.Error as error:
                refuse(error)
                raise
        self.checkpoint()

    def empty_log(self) -> None:
        """At the end, with the writer's turn taken for good. What cannot be emptied, because a
        reader or a full disk is in the way, stays in the log and loses nothing."""
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def _reclaim_chunk(self) -> int:
        """The free pages left."""
        with self._exclusive(monotonic() + WAIT_S):
            try:
                # execute() would free one page only, on Python 3.11.
                self._connection.executescript(f"PRAGMA incremental_vacuum({_CHUNK_PAGES})")
            except sqlite3.Error as error:
                refuse(error)
                raise
            free: int = pragma(self._connection, "freelist_count")
            return free

"""One owner for each database file, over all processes of the machine."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock, Timeout

from mqlite.errors import DatabaseLocked, Unavailable


class Ownership:
    """Holds `<canonical path>.lock`. The lock file stays when it is released: removing it
    would let two owners hold two files of one name."""

    def __init__(self, database: Path) -> None:
        path = database.with_name(database.name + ".lock")
        self._lock = FileLock(
            path, timeout=0, mode=0o600, thread_local=False, fallback_to_soft=False
        )
        try:
            self._lock.acquire()
        except Timeout:
            raise DatabaseLocked(
                f"{database} is already open in this or another process ({path} is held). One "
                "owner at a time may receive and administrate; others use the owner's HTTP "
                "endpoint, or mqlite.outbox() to send from a transaction on the same file"
            ) from None
        except (OSError, NotImplementedError) as error:
            # The second is filelock's, on a file system that has no locks.
            raise Unavailable(
                f"the lock file {path} cannot be created or locked ({error})", reason="read_only"
            ) from error

    def release(self) -> None:
        self._lock.release()

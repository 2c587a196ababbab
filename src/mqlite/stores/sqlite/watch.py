"""Looks for commits of other connections while the writer rests."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from time import monotonic
from typing import Final

from mqlite.errors import MqliteError
from mqlite.stores.sqlite.admission import WAIT_S
from mqlite.stores.sqlite.committer import Committer
from mqlite.stores.sqlite.foreign import ForeignCommits

NEAR_S: Final = 0.005
FAR_S: Final = 0.05
"""Between two looks where nothing announced itself: any process may commit at any time,
and is to be noticed within 100 ms."""


class Watch:
    """Takes over foreign effects soon after their commit; in groups the writer does so
    itself."""

    def __init__(
        self,
        foreign: ForeignCommits,
        committer: Committer,
        exclusive: Callable[[float], AbstractContextManager[None]],
        logger: logging.Logger,
    ) -> None:
        self._foreign = foreign
        self._committer = committer
        self._exclusive = exclusive
        self._logger = logger
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def look(self) -> None:
        """Publish what other connections have committed, now. Raises Unavailable."""
        deadline = monotonic() + WAIT_S
        with self._exclusive(deadline):
            if self._foreign.pending():
                self._committer.begin(deadline, look=True)
                self._committer.commit()

    def start(self) -> None:
        """Look again and again, in a thread of its own."""
        self._thread = threading.Thread(target=self._loop, name="mqlite-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _loop(self) -> None:
        while not self._stopped.wait(NEAR_S if self._foreign.near else FAR_S):
            try:
                self.look()
            except MqliteError as error:
                self._logger.debug("could not look for foreign commits: %s", error)
            except Exception:
                self._logger.exception("could not look for foreign commits")

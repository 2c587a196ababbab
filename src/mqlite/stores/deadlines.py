"""The earliest time at which work of a kind can fall due, as far as is known."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from mqlite.durations import MAX_MS

UNKNOWN: Final = 0
NEVER: Final = MAX_MS


class Deadlines:
    """Known once a pass has looked; from then on lowered by every committed `Due`.

    While a pass looks, and after one that failed, the answer is `UNKNOWN`. What commits
    in the meantime is not lost: the pass either sees its rows or is told of it.
    """

    def __init__(self) -> None:
        self.on_sooner: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._known: dict[str, int] = {}
        self._noted: dict[str, int] = {}

    def earliest(self, kind: str) -> int:
        """Epoch ms; `UNKNOWN` where the database must be asked, `NEVER` where there is
        none."""
        return self._known.get(kind, UNKNOWN)

    def note(self, kind: str, at: int) -> None:
        """Work of `kind` falls due at `at`. Called only after the commit."""
        if at >= self._noted.get(kind, NEVER):
            return  # a pass that forgets what was noted looks afterwards, and sees this work
        with self._lock:
            if at < self._noted.get(kind, NEVER):
                self._noted[kind] = at
            known = self._known.get(kind)
            sooner = known is not None and at < known
            if sooner:
                self._known[kind] = at
        if sooner:
            self.on_sooner()

    @contextmanager
    def looking(self, kind: str) -> Iterator[None]:
        """A pass that looks for the earliest work of `kind` and notes it."""
        with self._lock:
            self._known.pop(kind, None)
            self._noted.pop(kind, None)
        yield
        with self._lock:
            self._known[kind] = self._noted.get(kind, NEVER)

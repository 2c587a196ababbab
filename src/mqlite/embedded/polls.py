"""The long polls of one handle, which can be ended without closing the queue."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager


class Polls:
    """Ends waits by poking their events; whoever waits looks at `ended` then."""

    def __init__(self) -> None:
        self.ended = False
        self._events: set[threading.Event] = set()
        self._lock = threading.Lock()

    def end(self) -> None:
        """End those under way, and every one that begins from here on."""
        with self._lock:
            self.ended = True
            for event in self._events:
                event.set()

    @contextmanager
    def waiting(self, event: threading.Event) -> Generator[None]:
        """For as long as somebody waits for the event."""
        with self._lock:
            self._events.add(event)
        try:
            yield
        finally:
            with self._lock:
                self._events.discard(event)

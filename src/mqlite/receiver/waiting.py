"""Waiting by `Clock.elapsed`, which `Clock.wait` does not know."""

from __future__ import annotations

import threading
from typing import Final

from mqlite.clock import Clock

NEVER: Final = 2**62
_LONGEST_MS: Final = 3_600_000


def wait_until(clock: Clock, at: int, poke: threading.Event) -> None:
    """Return when `poke` is set or it may have become `at` (of `clock.elapsed()`): look."""
    # In this order: time that passes in between makes the wait too short, never too long.
    now = clock.now()
    left = min(at - clock.elapsed(), _LONGEST_MS)
    if left > 0:
        clock.wait(now + left, poke)

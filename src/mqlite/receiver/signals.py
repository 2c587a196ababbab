"""SIGINT and SIGTERM, for as long as a receiver runs. Works wherever `signal.signal` does, also
on Windows."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

STOPPING: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def caught(tell: Callable[[], object]) -> Generator[None]:
    """Call `tell` for each such signal, within a signal handler; on another thread than the
    main one, which alone may do that, nothing is changed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    owner = os.getpid()
    before: dict[int, Any] = {}

    def on_signal(number: int, frame: FrameType | None) -> None:
        if os.getpid() == owner:
            tell()
            return
        # A forked child inherits this, and is no receiver: it shall stop as it would have.
        signal.signal(number, before[number] or signal.SIG_DFL)
        os.kill(os.getpid(), number)

    for stopping in STOPPING:
        before[stopping] = signal.signal(stopping, on_signal)
    try:
        yield
    finally:
        for stopped, handler in before.items():
            # None: it was not installed from Python, and cannot be put back.
            signal.signal(stopped, signal.SIG_DFL if handler is None else handler)

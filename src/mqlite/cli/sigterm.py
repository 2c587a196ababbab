"""SIGTERM ends a command as Ctrl-C does, so that what is unfinished is taken away."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType


class Sigterm:
    """For a `with` block SIGTERM raises KeyboardInterrupt in the main thread; `came` tells it
    from Ctrl-C.

    Nothing is changed where somebody else has said what SIGTERM does, nor on another thread
    than the main one, which alone may change it. (Windows has no SIGTERM that could be caught:
    there it ends the process.)
    """

    def __init__(self) -> None:
        self._came = 0
        self._owner = os.getpid()
        self._installed = False

    @property
    def came(self) -> bool:
        return self._came > 0

    def __enter__(self) -> Sigterm:
        if threading.current_thread() is threading.main_thread():
            self._installed = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        if self._installed:
            signal.signal(signal.SIGTERM, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._owner:
            # A forked child inherits this, and is no command: it shall end as it would have.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        self._came += 1
        if self._came != 2:  # `timeout` sends two at once; that must not end the cleaning up
            raise KeyboardInterrupt

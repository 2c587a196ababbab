"""Waiting for what other threads and processes are about to do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

T = TypeVar("T")

PATIENCE_S: Final = 60.0
"""After so many seconds what must happen counts as not happening."""


def eventually(condition: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    """Wait until something is so."""
    give_up = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < give_up, "it never happened"
        time.sleep(0.001)


class Running(Future[T]):
    """A call in a thread of its own."""

    def result(self, timeout: float | None = PATIENCE_S) -> T:
        return super().result(timeout)


def start(function: Callable[..., T], *args: Any, **kwargs: Any) -> Running[T]:
    """Run a call in a thread of its own."""
    running: Running[T] = Running()

    def run() -> None:
        try:
            running.set_result(function(*args, **kwargs))
        except BaseException as error:
            running.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return running

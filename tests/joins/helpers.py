"""Small things the tests share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

import mqlite

SOON_S = 30.0


class Undo(Exception):
    """Rolls back whatever it passes."""


class Running:
    """A call in a thread of its own."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._outcome: Any = None
        self._error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self._outcome = self._call()
        except BaseException as error:
            self._error = error

    def result(self) -> Any:
        self.thread.join(SOON_S)
        assert not self.thread.is_alive(), "it takes too long"
        if self._error is not None:
            raise self._error
        return self._outcome


def until(condition: Callable[[], object], within_s: float = SOON_S) -> None:
    deadline = monotonic() + within_s
    while not condition():
        assert monotonic() < deadline, "it does not come true"
        sleep(0.001)


def bodies(mq: mqlite.Embedded, queue: str = "q") -> list[bytes]:
    """What is in the queue, in order."""
    return [message.body for message in mq.peek(queue, max_messages=250)]


def waiting_receiver(mq: mqlite.Embedded, queue: str = "q") -> Running:
    """A long poll that has found nothing and waits."""
    [id_] = [int(info.generation) for info in mq.list_queues() if info.name == queue]
    places = mq.core.store.waiters
    before = places.waiting(id_)
    receiver = Running(lambda: mq.receive(queue, wait="20s"))
    until(lambda: places.waiting(id_) > before)
    return receiver


def noticed(mq: mqlite.Embedded) -> None:
    """What others have committed so far is told."""
    mq.core.store.look()

"""Small things the tests share."""

from __future__ import annotations

import mqlite
from mqlite.messages import Message
from patience import Running, eventually, start


class Undo(Exception):
    """Rolls back whatever it passes."""


def bodies(mq: mqlite.Embedded, queue: str = "q") -> list[bytes]:
    """What is in the queue, in order."""
    return [message.body for message in mq.peek(queue, max_messages=250)]


def waiting_receiver(mq: mqlite.Embedded, queue: str = "q") -> Running[list[Message]]:
    """A long poll that has found nothing and waits."""
    [id_] = [int(info.generation) for info in mq.list_queues() if info.name == queue]
    places = mq.core.store.waiters
    before = places.waiting(id_)
    receiver = start(mq.receive, queue, wait="20s")
    eventually(lambda: places.waiting(id_) > before)
    return receiver


def noticed(mq: mqlite.Embedded) -> None:
    """What others have committed so far is told."""
    mq.core.store.look()

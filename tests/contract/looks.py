"""Short ways to look at a queue."""

from __future__ import annotations

from collections.abc import Iterable

from mqlite.api import MQ
from mqlite.messages import Message
from mqlite.model import MessageData, QueueInfo

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
NOBODY = "0" * 32
"""A lock token that nobody holds."""


def one(mq: MQ, queue: str, **how: object) -> Message:
    """The one message that is there to be received."""
    [message] = mq.receive(queue, **how)
    return message


def seqs(messages: Iterable[MessageData]) -> list[int]:
    return [message.seq_number for message in messages]


def bodies(messages: Iterable[MessageData]) -> list[bytes]:
    return [message.body for message in messages]


def state(mq: MQ, queue: str, seq: int) -> str:
    """The state of a message; '' when it is gone."""
    found = mq.peek(queue, from_seq=seq, max_messages=1)
    return found[0].state if found and found[0].seq_number == seq else ""


def peeked(mq: MQ, queue: str, seq: int) -> MessageData:
    [message] = mq.peek(queue, from_seq=seq, max_messages=1)
    assert message.seq_number == seq
    return message


def counts(mq: MQ, queue: str) -> dict[str, int]:
    """The states that are not empty."""
    stats = mq.stats(queue)
    names = ("active", "locked", "deferred", "scheduled", "dead_lettered")
    found = {name: getattr(stats, name) for name in names if getattr(stats, name)}
    assert sum(found.values()) == stats.total
    return found


def info(mq: MQ, queue: str) -> QueueInfo:
    [found] = [entry for entry in mq.list_queues() if entry.name == queue]
    return found


def dead_letter(mq: MQ, queue: str, *bodies: bytes | str) -> list[int]:
    """Send messages and reject them; answers their numbers."""
    sent = [mq.send(queue, body) for body in bodies]
    for message in mq.receive(queue, max_messages=len(sent)):
        message.reject()
    return sent

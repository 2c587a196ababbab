"""Sending to a queue or a topic, scheduling, and cancelling what is scheduled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final

import msgspec

from mqlite.durations import MAX_MS
from mqlite.engine import content, dedup, leaving
from mqlite.engine.catalog import Queue, Topic, existing_queue
from mqlite.engine.content import Content
from mqlite.engine.dedup import Verdicts
from mqlite.engine.lines import Place
from mqlite.engine.names import check_present, no_queue
from mqlite.engine.routing import Routes, route
from mqlite.engine.steps import (
    EXPIRY_DUE,
    NOW,
    SCHEDULE_DUE,
    Due,
    Event,
    Insert,
    Last,
    Operation,
    QueueById,
    Ready,
    Resolve,
    Row,
    Stage,
    Statement,
    Steps,
    operation,
)
from mqlite.errors import (
    DedupConflict,
    GroupRequired,
    InvalidArgument,
    MessageTooLarge,
    NotFound,
)
from mqlite.model import MAX_PRIORITY, MAX_SEND, OutMessage

ROW_BYTES: Final = 512
"""What a message weighs besides its body."""

INTO_MESSAGES: Final = """
    INSERT INTO mqlite_messages (
        queue_id, state, line, head, priority, sort_at, visible_at, enqueued_at, ttl_ms, expires_at,
        group_id, message_id, correlation_id, reply_to, content_type, subject, body_size,
        payload_id, properties, body
    ) VALUES
"""
OUTSIDE_LINES: Final = "(?, ?, NULL, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
IN_LINE: Final = """(
    ?, ?, ?,
    NOT EXISTS (SELECT 1 FROM mqlite_messages WHERE queue_id = ? AND line = ?),
    ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
"""The head of a line is the message that finds it empty; a NULL line is always empty."""

COUNT_HEADS: Final = """
    SELECT count(*) FROM mqlite_messages WHERE seq BETWEEN ? AND ? AND head = 1
"""
SELECT_CANCELABLE: Final = """
    SELECT seq, line, head, payload_id FROM mqlite_messages
     WHERE seq = ? AND queue_id = ? AND state = 'scheduled' AND delivery_count = 0
"""


_FAILURES: Final[dict[Stage, str]] = {
    "compile": "filter_uncompiled",
    "evaluate": "filter_failed",
}


class Shape(msgspec.Struct, frozen=True):
    """What all messages of a call have in common."""

    now: int
    at: int
    ttl_ms: int

    @property
    def visible_at(self) -> int:
        return self.at or self.now


class Sent(list[int]):
    """The sequence number of each message: of a topic's copies the last accepting one's, 0
    where none accepted, or where the message was refused by itself, which `conflicts` tells
    by index."""

    conflicts: Mapping[int, DedupConflict] = MappingProxyType({})


def send(
    target: str,
    messages: Sequence[OutMessage],
    *,
    at: int = 0,
    ttl_ms: int = 0,
    max_bytes: int,
    routes: Routes | None = None,
) -> Operation[Sent]:
    """Send to a queue or topic in one transaction.

    `at` (epoch ms, 0: now) schedules. Raises InvalidArgument, MessageTooLarge, NotFound,
    GroupRequired; DedupConflict for a single message.
    """
    steps = partial(_send, target, messages, at, ttl_ms, max_bytes, routes)
    return Operation("send", steps, size=weight(messages))


def weight(messages: Sequence[OutMessage]) -> int:
    """What messages weigh for admission, in bytes."""
    size = ROW_BYTES * len(messages)
    for message in messages:
        size += len(message.body)
    return size


def _send(
    target: str,
    messages: Sequence[OutMessage],
    at: int,
    ttl_ms: int,
    max_bytes: int,
    routes: Routes | None,
) -> Steps[Sent]:
    check_present(target)
    if at < 0:
        raise InvalidArgument("the scheduled time must not be negative")
    if len(messages) > MAX_SEND:
        raise MessageTooLarge(f"{len(messages)} messages in one send, the limit is {MAX_SEND}")
    for message in messages:
        check_message(message, max_bytes)
    now: int = yield NOW
    if at and at <= now:
        raise InvalidArgument("the scheduled time must be in the future")
    shape = Shape(now, at, ttl_ms)
    found: Queue | Topic | None = yield Resolve(target)
    if found is None:
        raise no_queue(target)
    if isinstance(found, Topic):
        return (yield from _send_to_topic(found, messages, shape, routes))
    _check_groups(found, messages)
    if not found.config.dedup_window_ms:
        contents = content.inline(messages) or (yield from content.place(messages))
        return Sent((yield from _insert(found, messages, contents, shape, last=True)))
    verdicts = yield from dedup.judge(found, messages, range(len(messages)), now)
    return (yield from _store([(found, verdicts)], messages, shape))


def _send_to_topic(
    topic: Topic, messages: Sequence[OutMessage], shape: Shape, routes: Routes | None
) -> Steps[Sent]:
    if routes is None or routes.topic != topic:
        routes = route(topic, messages, shape.now, shape.visible_at)
    for failure in routes.failures:
        yield failure
        yield Event(_FAILURES[failure.stage], failure.queue_id, failure.number)
    admitted: list[tuple[Queue, Verdicts]] = []
    for subscription, indexes in routes.accepted:
        queue: Queue = yield QueueById(subscription.queue_id)
        _check_groups(queue, [messages[index] for index in indexes])
        admitted.append((queue, (yield from dedup.judge(queue, messages, indexes, shape.now))))
    return (yield from _store(admitted, messages, shape))


def check_message(message: OutMessage, max_bytes: int) -> None:
    if len(message.body) > max_bytes:
        raise MessageTooLarge(
            f"the body is {len(message.body)} bytes, the limit is {max_bytes} bytes"
        )
    if not -MAX_PRIORITY <= message.priority <= MAX_PRIORITY:
        raise InvalidArgument(f"priority must be {-MAX_PRIORITY} to {MAX_PRIORITY}")


def _check_groups(queue: Queue, messages: Iterable[OutMessage]) -> None:
    if queue.config.ordering_mode == "group_fifo" and not all(m.group_id for m in messages):
        raise GroupRequired(f"queue {queue.name!r} requires a group_id")


def _expiry(queue: Queue, shape: Shape) -> tuple[int, int]:
    """The time to live and when it ends. It counts from when the message becomes visible;
    the queue's default caps it."""
    default = queue.config.default_ttl_ms
    ttl = shape.ttl_ms if shape.ttl_ms > 0 else default
    if default:
        ttl = min(ttl, default)
    expires_at = shape.visible_at + ttl if ttl else 0
    if expires_at > MAX_MS:
        raise InvalidArgument("the time to live ends beyond the largest time that can be stored")
    return ttl, expires_at


def _store(
    admitted: Sequence[tuple[Queue, Verdicts]], messages: Sequence[OutMessage], shape: Shape
) -> Steps[Sent]:
    """Write the new copies queue by queue, each payload once. Raises DedupConflict, where
    nothing was to be written."""
    deliveries = [0] * len(messages)
    for _, verdicts in admitted:
        for index in verdicts.new:
            deliveries[index] += 1
    stored = [index for index, count in enumerate(deliveries) if count]
    placed = yield from content.place(
        [messages[index] for index in stored], [deliveries[index] for index in stored]
    )
    contents = dict(zip(stored, placed, strict=True))
    answer = Sent([0] * len(messages))
    for queue, verdicts in admitted:
        seqs = dict(verdicts.known)
        if verdicts.new:
            keys = yield from _insert(
                queue,
                [messages[index] for index in verdicts.new],
                [contents[index] for index in verdicts.new],
                shape,
            )
            seqs.update(zip(verdicts.new, keys, strict=True))
            yield from dedup.remember(queue, verdicts, seqs, shape.now)
        for index, first in verdicts.repeats.items():
            seqs[index] = seqs[first]
        for index, seq in seqs.items():
            answer[index] = seq
    answer.conflicts = {
        index: _conflict(messages[index])
        for _, verdicts in admitted
        for index in verdicts.conflicts
        if not answer[index]
    }
    if answer.conflicts and len(messages) == 1:
        raise answer.conflicts[0]
    return answer


def _insert(
    queue: Queue,
    messages: Sequence[OutMessage],
    contents: Sequence[Content],
    shape: Shape,
    *,
    last: bool = False,
) -> Steps[list[int]]:
    """Write messages into one queue, as the operation's `last` step if nothing else comes;
    answers their sequence numbers."""
    if not messages:
        return []
    ttl_ms, expires_at = _expiry(queue, shape)
    in_lines = queue.strict or any(message.group_id for message in messages)
    visible_at = shape.visible_at
    state = "scheduled" if shape.at else "active"
    times = (queue.sort_at(visible_at), visible_at, shape.now, ttl_ms, expires_at)
    rows: list[Row] = [
        (
            queue.id,
            state,
            *(_place_in_line(queue, message) if in_lines else ()),
            message.priority,
            *times,
            message.group_id or None,
            message.message_id,
            message.correlation_id,
            message.reply_to,
            message.content_type,
            message.subject,
            len(message.body),
            *where,
        )
        for message, where in zip(messages, contents, strict=True)
    ]
    values = IN_LINE if in_lines else OUTSIDE_LINES
    insert = Insert(INTO_MESSAGES, values, rows, in_turn=in_lines)
    keys: list[int] = yield Last(insert) if last and not in_lines else insert
    yield Event("enqueued", queue.id, len(keys))
    if expires_at:
        yield Due(EXPIRY_DUE, expires_at)
    if shape.at:
        yield Event("scheduled", queue.id, len(keys))
        yield Due(SCHEDULE_DUE, shape.at)
        return keys
    heads = len(keys)
    if in_lines:
        heads = (yield Statement(COUNT_HEADS, (keys[0], keys[-1])))[0][0]
    if heads:
        yield Ready(queue.id, heads)
    return keys


def _place_in_line(queue: Queue, message: OutMessage) -> Row:
    line = queue.line_of(message.group_id)
    return (line, queue.id, line)


def _conflict(message: OutMessage) -> DedupConflict:
    return DedupConflict(
        f"message_id {message.message_id!r} was already used with another body "
        "within the dedup window"
    )


@operation()
def cancel(queue_name: str, seq: int) -> Steps[None]:
    """Delete a scheduled message that was never delivered. Raises NotFound."""
    queue = yield from existing_queue(queue_name)
    rows = yield Statement(SELECT_CANCELABLE, (seq, queue.id))
    if not rows:
        raise NotFound(f"queue {queue_name!r} has no scheduled message {seq} to cancel")
    yield from leaving.finish(queue, [Place(*rows[0])], "canceled")
    yield Event("canceled", queue.id)

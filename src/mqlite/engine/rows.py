"""Reading message rows: the columns, and the messages made of them."""

from __future__ import annotations

from typing import Final

from mqlite.engine.content import BODY, PROPERTIES, decode_properties
from mqlite.engine.steps import Row
from mqlite.model import MessageData

CLAIMED: Final = f"""
    seq, priority, sort_at, enqueued_at, locked_until, delivery_count, failure_count, lock_token,
    message_id, correlation_id, reply_to, group_id, content_type, subject,
    {PROPERTIES}, {BODY}
"""
PEEKED: Final = f"""
    seq, priority, state, enqueued_at, expires_at, visible_at, locked_until, delivery_count,
    failure_count, dead_letter_reason, dead_letter_description,
    message_id, correlation_id, reply_to, group_id, content_type, subject,
    {PROPERTIES}, {BODY}
"""


def claimed(row: Row) -> MessageData:
    """A message as receive reports it: never its state, visibility or expiry."""
    return MessageData(
        seq_number=row[0],
        priority=row[1],
        enqueued_at_ms=row[3],
        locked_until_ms=row[4],
        delivery_count=row[5],
        failure_count=row[6],
        lock_token=row[7] or "",
        message_id=row[8],
        correlation_id=row[9],
        reply_to=row[10],
        group_id=row[11] or "",
        content_type=row[12],
        subject=row[13],
        properties=decode_properties(row[14]),
        body=row[15],
    )


def claim_order(row: Row) -> tuple[int, int, int]:
    """The order of claiming; RETURNING answers in another."""
    return -row[1], row[2], row[0]


def peeked(row: Row) -> MessageData:
    """A message as peek reports it: never its lock token."""
    return MessageData(
        seq_number=row[0],
        priority=row[1],
        state=row[2],
        enqueued_at_ms=row[3],
        expires_at_ms=row[4],
        visible_at_ms=row[5],
        locked_until_ms=row[6],
        delivery_count=row[7],
        failure_count=row[8],
        dead_letter_reason=row[9] or "",
        dead_letter_description=row[10] or "",
        message_id=row[11],
        correlation_id=row[12],
        reply_to=row[13],
        group_id=row[14] or "",
        content_type=row[15],
        subject=row[16],
        properties=decode_properties(row[17]),
        body=row[18],
    )

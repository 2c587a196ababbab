"""Reading message rows: the columns, in the order of the fields of `MessageData`, and the
messages made of them."""

from __future__ import annotations

from typing import Final

from mqlite.engine.content import BODY, PROPERTIES, decode_properties
from mqlite.engine.steps import Row
from mqlite.model import MessageData

CLAIMED: Final = f"""
    seq, enqueued_at, 0, 0, locked_until, delivery_count, coalesce(lock_token, ''), '', '', '',
    message_id, correlation_id, reply_to, coalesce(group_id, ''), content_type, subject,
    {PROPERTIES}, {BODY}, priority, failure_count, sort_at
"""
"""What receive reports: never the state, visibility or expiry."""

PEEKED: Final = f"""
    seq, enqueued_at, expires_at, visible_at, locked_until, delivery_count, '', state,
    coalesce(dead_letter_reason, ''), coalesce(dead_letter_description, ''),
    message_id, correlation_id, reply_to, coalesce(group_id, ''), content_type, subject,
    {PROPERTIES}, {BODY}, priority, failure_count
"""
"""What peek reports: never the lock token."""


def message(row: Row) -> MessageData:
    """The message in a row of `CLAIMED` or `PEEKED`."""
    fields = (*row[:16], decode_properties(row[16]), *row[17:20])
    return MessageData(*fields)


def claim_order(row: Row) -> tuple[int, int, int]:
    """The order of claiming, of a row of `CLAIMED`; RETURNING answers in another."""
    return -row[18], row[20], row[0]

"""Receive attempts: a retried receive answers its first batch instead of claiming another.

A record keeps which messages were claimed under which tokens; their bodies only for
receive-and-delete, where the rows are gone.
"""

from __future__ import annotations

import json
from typing import Final

import msgspec

from mqlite.engine import rows
from mqlite.engine.catalog import Queue
from mqlite.engine.steps import Statement, Steps
from mqlite.errors import InvalidArgument
from mqlite.model import MessageData, ReceiveMode

LIFETIME_MS: Final = 5 * 60 * 1000

SELECT_ATTEMPT: Final = """
    SELECT mode, answer FROM mqlite_attempts
     WHERE queue_id = ? AND attempt_id = ? AND expires_at > ?
"""
SELECT_STILL_LOCKED: Final = f"""
    SELECT {rows.CLAIMED} FROM mqlite_messages
     WHERE seq IN (SELECT value FROM json_each(?)) AND queue_id = ? AND state = 'locked'
       AND locked_until > ?
"""
RECORD: Final = """
    INSERT OR REPLACE INTO mqlite_attempts (queue_id, attempt_id, mode, answer, expires_at)
    VALUES (?, ?, ?, ?, ?)
"""
FORGET: Final = "DELETE FROM mqlite_attempts WHERE queue_id = ? AND attempt_id = ?"


class Claim(msgspec.Struct, array_like=True):
    """What a record keeps of a message claimed under a lease."""

    seq: int
    token: str
    delivery_count: int
    locked_until: int


_encode: Final = msgspec.msgpack.encode
_claims: Final = msgspec.msgpack.Decoder(list[Claim])
_messages: Final = msgspec.msgpack.Decoder(list[MessageData])


def replay(
    queue: Queue, attempt_id: str, mode: ReceiveMode, now: int
) -> Steps[list[MessageData] | None]:
    """The batch of an earlier receive under this id; None if there was none.

    Messages that are no longer locked under the same token are left out.
    Raises InvalidArgument where the earlier receive used another mode.
    """
    found = yield Statement(SELECT_ATTEMPT, (queue.id, attempt_id, now))
    if not found:
        return None
    recorded, answer = found[0]
    if recorded != mode:
        raise InvalidArgument(f"attempt {attempt_id!r} was made in {recorded} mode, not in {mode}")
    if mode == "receive_and_delete":
        return _messages.decode(answer)
    claims = _claims.decode(answer)
    seqs = json.dumps([claim.seq for claim in claims])
    locked = yield Statement(SELECT_STILL_LOCKED, (seqs, queue.id, now))
    held = {
        (message.seq_number, message.lock_token): message for message in map(rows.message, locked)
    }
    return [held[key] for claim in claims if (key := (claim.seq, claim.token)) in held]


def record(
    queue: Queue, attempt_id: str, mode: ReceiveMode, messages: list[MessageData], now: int
) -> Steps[None]:
    """Keep the batch for the longer of five minutes and the queue's lock duration."""
    if mode == "receive_and_delete":
        answer = _encode(messages)
    else:
        answer = _encode(
            [
                Claim(m.seq_number, m.lock_token, m.delivery_count, m.locked_until_ms)
                for m in messages
            ]
        )
    expires_at = now + max(queue.config.lock_duration_ms, LIFETIME_MS)
    yield Statement(RECORD, (queue.id, attempt_id, mode, answer, expires_at))


def forget(queue: Queue, attempt_id: str) -> Steps[None]:
    """After the batch was given back: a retry may claim again."""
    yield Statement(FORGET, (queue.id, attempt_id))

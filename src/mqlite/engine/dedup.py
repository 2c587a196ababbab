"""Duplicate detection: within a queue's window a message id stands for one message.

The key is the message id, or the body's digest where there is none. The window is fixed
from the first accepted send; a suppressed duplicate does not extend it. The body alone is
compared (source: mqlite). Keys are compared in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

import msgspec

from mqlite.engine.catalog import Queue
from mqlite.engine.steps import Event, Many, Statement, Steps
from mqlite.model import OutMessage

SELECT_KNOWN: Final = """
    SELECT body_digest, seq FROM mqlite_dedup WHERE queue_id = ? AND key = ? AND seen_at > ?
"""
REMEMBER: Final = """
    INSERT INTO mqlite_dedup (queue_id, key, body_digest, seq, seen_at) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (queue_id, key) DO UPDATE
       SET body_digest = excluded.body_digest, seq = excluded.seq, seen_at = excluded.seen_at
"""


class Verdicts(msgspec.Struct):
    """What becomes of each message of a call in one queue, by its index in the call."""

    new: list[int] = []
    known: dict[int, int] = {}
    """A duplicate of an earlier send: its sequence number."""
    repeats: dict[int, int] = {}
    """A duplicate within the call: the index of its first mention."""
    conflicts: set[int] = set()
    keys: dict[int, tuple[str, bytes]] = {}


def judge(
    queue: Queue, messages: Sequence[OutMessage], indexes: Sequence[int], now: int
) -> Steps[Verdicts]:
    """Sort the messages at `indexes` into new ones, duplicates and conflicts."""
    window = queue.config.dedup_window_ms
    if not window:
        return Verdicts(new=list(indexes))
    verdicts = Verdicts()
    first: dict[str, int] = {}
    for index in indexes:
        body_digest = sha256(messages[index].body)
        key, digest = messages[index].message_id or body_digest.hexdigest(), body_digest.digest()
        if key in first:
            same = verdicts.keys[first[key]][1] == digest
            if not same:
                verdicts.conflicts.add(index)
            elif first[key] in verdicts.known:
                verdicts.known[index] = verdicts.known[first[key]]
            else:
                verdicts.repeats[index] = first[key]
            continue
        rows = yield Statement(SELECT_KNOWN, (queue.id, key, now - window))
        if rows and rows[0][0] != digest:
            verdicts.conflicts.add(index)
            continue
        first[key] = index
        verdicts.keys[index] = key, digest
        if rows:
            verdicts.known[index] = rows[0][1]
        else:
            verdicts.new.append(index)
    yield from _report(queue, verdicts)
    return verdicts


def remember(queue: Queue, verdicts: Verdicts, seqs: dict[int, int], now: int) -> Steps[None]:
    """Record the messages that were stored, in the transaction that stored them."""
    if verdicts.keys and verdicts.new:
        yield Many(
            REMEMBER,
            [(queue.id, *verdicts.keys[index], seqs[index], now) for index in verdicts.new],
        )


def _report(queue: Queue, verdicts: Verdicts) -> Steps[None]:
    duplicates = len(verdicts.known) + len(verdicts.repeats)
    if duplicates:
        yield Event("deduplicated", queue.id, duplicates)
    if verdicts.conflicts:
        yield Event("dedup_conflict", queue.id, len(verdicts.conflicts))

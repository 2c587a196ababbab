"""Settlement receipts: a repeated settlement succeeds if, and only if, it is the same request.

A receipt is a digest of the whole request, written in the settlement's transaction and
usable for 30 minutes; a replay does not extend it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from mqlite.engine.steps import Many, Statement, Steps

LIFETIME_MS: Final = 30 * 60 * 1000

SELECT_RECEIPTS: Final = """
    SELECT digest FROM mqlite_receipts
     WHERE seq IN (SELECT value FROM json_each(?)) AND expires_at > ?
"""
SELECT_RECEIPT: Final = """
    SELECT 1 FROM mqlite_receipts WHERE seq = ? AND digest = ? AND expires_at > ?
"""
_encode: Final = msgspec.msgpack.Encoder().encode

INSERT_RECEIPT: Final = """
    INSERT OR REPLACE INTO mqlite_receipts (seq, digest, expires_at) VALUES (?, ?, ?)
"""


def digest(queue_id: int, seq: int, token: str, operation: str, *arguments: str) -> bytes:
    """What identifies a settlement: every part counts, each apart from the others."""
    return blake2b(_encode((queue_id, seq, token, operation, *arguments)), digest_size=16).digest()


def exists(seq: int, request: bytes, now: int) -> Steps[bool]:
    return bool((yield Statement(SELECT_RECEIPT, (seq, request, now))))


def known(requests: Iterable[tuple[int, bytes]], now: int) -> Steps[set[bytes]]:
    """Which of these requests, as (sequence number, digest), have a usable receipt."""
    seqs = json.dumps([seq for seq, _ in requests])
    rows = yield Statement(SELECT_RECEIPTS, (seqs, now))
    return {row[0] for row in rows}


def receipt(seq: int, request: bytes, now: int) -> Statement:
    """Records a settlement; only one that really changed the message."""
    return Statement(INSERT_RECEIPT, (seq, request, now + LIFETIME_MS))


def record(requests: Sequence[tuple[int, bytes]], now: int) -> Steps[None]:
    """`receipt` for many."""
    until = now + LIFETIME_MS
    yield Many(INSERT_RECEIPT, [(seq, request, until) for seq, request in requests])

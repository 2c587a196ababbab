"""Where a message's body and properties are kept.

A claim rewrites the message's row, so what is large, or shared by several deliveries,
lives in a payload row that no state change touches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from mqlite.engine.steps import Insert, Statement, Steps
from mqlite.model import OutMessage

INLINE_BYTES: Final = 1024
"""Longest content that is kept in the message's row (measured: 64 KiB inline costs six
times the time and seven times the log of 64 KiB apart, for every claim)."""

BODY: Final = (
    "CASE WHEN payload_id IS NULL THEN body "
    "ELSE (SELECT p.body FROM mqlite_payloads AS p WHERE p.id = payload_id) END"
)
PROPERTIES: Final = (
    "CASE WHEN payload_id IS NULL THEN properties "
    "ELSE (SELECT p.properties FROM mqlite_payloads AS p WHERE p.id = payload_id) END"
)

INTO_PAYLOADS: Final = "INSERT INTO mqlite_payloads (body, properties) VALUES"
DROP_PAYLOAD: Final = """
    DELETE FROM mqlite_payloads
     WHERE id = ?
       AND NOT EXISTS (SELECT 1 FROM mqlite_messages AS m WHERE m.payload_id = mqlite_payloads.id)
       AND NOT EXISTS (SELECT 1 FROM mqlite_finished AS f WHERE f.payload_id = mqlite_payloads.id)
"""

_encoder: Final = msgspec.json.Encoder(order="deterministic")
_decoder: Final = msgspec.json.Decoder(dict[str, str])

Content = tuple[int | None, str, bytes]
"""The columns payload_id, properties and body of a message's row."""


def encode_properties(properties: dict[str, str]) -> str:
    return _encoder.encode(properties).decode()


def decode_properties(text: str) -> dict[str, str]:
    return _decoder.decode(text) if text else {}


def inline(messages: Sequence[OutMessage]) -> list[Content] | None:
    """The content columns of messages with one delivery each, if all of it stays in their
    rows."""
    contents: list[Content] = []
    for message in messages:
        properties = encode_properties(message.properties) if message.properties else ""
        if len(message.body) + len(properties) > INLINE_BYTES:
            return None
        contents.append((None, properties, message.body))
    return contents


def place(messages: Sequence[OutMessage], deliveries: Sequence[int] = ()) -> Steps[list[Content]]:
    """Store what does not belong into the rows; answer the content columns of each message.

    `deliveries` says how many rows each message gets, one where it is left out.
    """
    placed: list[Content] = []
    apart: list[tuple[bytes, str]] = []
    where: list[int] = []
    for index, message in enumerate(messages):
        properties = encode_properties(message.properties) if message.properties else ""
        shared = deliveries and deliveries[index] > 1
        if shared or len(message.body) + len(properties) > INLINE_BYTES:
            where.append(index)
            apart.append((message.body, properties))
            placed.append((None, "", b""))
        else:
            placed.append((None, properties, message.body))
    if apart:
        keys: list[int] = yield Insert(INTO_PAYLOADS, "(?, ?)", apart)
        for index, key in zip(where, keys, strict=True):
            placed[index] = (key, "", b"")
    return placed


def drop(payload_id: int | None) -> Steps[None]:
    """Delete the payload unless another delivery, live or finished, still refers to it."""
    if payload_id is not None:
        yield Statement(DROP_PAYLOAD, (payload_id,))

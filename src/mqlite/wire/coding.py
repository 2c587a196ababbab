"""Between bytes, the structs of the wire, and messages."""

from __future__ import annotations

import binascii
from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec

from mqlite.errors import InvalidArgument, MessageTooLarge
from mqlite.model import OutMessage
from mqlite.wire.known_fields import with_known_fields
from mqlite.wire.requests import Request, WireMessage

MAX_REQUEST_BYTES: Final = 32 * 1024 * 1024
RequestType = TypeVar("RequestType", bound=Request)

_encoder: Final = msgspec.json.Encoder(order="deterministic")


def encode(answer: Any) -> bytes:
    """One line of JSON."""
    return _encoder.encode(answer) + b"\n"


_UNSCANNED_BYTES: Final = 1024 * 1024
_MAX_OBJECTS: Final = 400_000
_MAX_VALUES: Final = 2_000_000
# An empty object takes three bytes of a request and hundreds of memory.


def decode(decoder: msgspec.json.Decoder[RequestType], body: bytes | bytearray) -> RequestType:
    """Read one request. Raises InvalidArgument, naming the field where one is at fault."""
    if not body:
        raise InvalidArgument("the request body is empty, expected a JSON object")
    if len(body) > _UNSCANNED_BYTES and (
        body.count(b"{") > _MAX_OBJECTS or body.count(b",") > _MAX_VALUES
    ):
        raise MessageTooLarge(f"the request holds more than {_MAX_OBJECTS} objects; split it")
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as problem:
        raise InvalidArgument(with_known_fields(str(problem), decoder.type)) from None
    except RecursionError:
        raise InvalidArgument("the request is nested too deeply") from None


def out_messages(messages: Iterable[WireMessage], max_bytes: int) -> list[OutMessage]:
    """The messages to send. Raises as `out_message`, naming the message."""
    out: list[OutMessage] = []
    try:
        for message in messages:
            out.append(out_message(message, max_bytes))
    except (InvalidArgument, MessageTooLarge) as problem:
        raise type(problem)(f"messages[{len(out)}].{problem}") from None
    return out


def out_message(message: WireMessage, max_bytes: int) -> OutMessage:
    """The message to send. Raises MessageTooLarge, InvalidArgument."""
    body = message.body
    properties = message.properties
    return OutMessage(
        body=decode_body(body, max_bytes) if body else b"",
        message_id=message.message_id or "",
        group_id=message.group_id or "",
        subject=message.subject or "",
        correlation_id=message.correlation_id or "",
        reply_to=message.reply_to or "",
        content_type=message.content_type or "",
        properties={key: value or "" for key, value in properties.items()} if properties else {},
        priority=message.priority or 0,
    )


def wire_message(message: OutMessage) -> WireMessage:
    """The message as a client sends it."""
    properties: dict[str, str | None] = dict(message.properties)
    return WireMessage(
        body=binascii.b2a_base64(message.body, newline=False).decode() or None,
        message_id=message.message_id or None,
        group_id=message.group_id or None,
        subject=message.subject or None,
        correlation_id=message.correlation_id or None,
        reply_to=message.reply_to or None,
        content_type=message.content_type or None,
        properties=properties or None,
        priority=message.priority or None,
    )


def decode_body(text: str, max_bytes: int) -> bytes:
    """Base64 with the standard alphabet and padding; CR and LF are ignored, and so are
    bits left over in the last group.

    Raises MessageTooLarge from the length of the text, before anything is decoded, and
    InvalidArgument.
    """
    if "\n" in text or "\r" in text:
        text = text.replace("\r", "").replace("\n", "")
    size = len(text) // 4 * 3 - text.count("=", -2)
    if size > max_bytes:
        raise MessageTooLarge(f"body is {size} bytes, the limit is {max_bytes} bytes")
    try:
        body = binascii.a2b_base64(text, strict_mode=True)
    except ValueError as problem:
        raise InvalidArgument(f"body is not base64: {str(problem).lower()}") from None
    if len(body) != size:  # strict_mode lets padding pass that no group asked for
        raise InvalidArgument("body is not base64: the padding is wrong")
    return body

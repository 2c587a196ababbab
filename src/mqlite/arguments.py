"""Arguments of the Python API, checked and turned into what operations take.

The wire clamps some values for the sake of existing clients; here they are refused, with
an error that names the accepted ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from mqlite.api import BaseMessage, Body, Lease
from mqlite.durations import Duration, to_ms
from mqlite.errors import InvalidArgument
from mqlite.model import (
    MAX_BATCH,
    MAX_PEEK,
    MAX_WAIT_MS,
    RECEIVE_MODES,
    STATES,
    OutMessage,
    QueueSettings,
    ReceiveMode,
)

_DURATIONS: Final = frozenset(
    {
        "lock_duration",
        "default_ttl",
        "dedup_window",
        "dlq_max_age",
        "retry_initial_delay",
        "retry_max_delay",
        "retain_completed",
    }
)
_POSITIVE: Final = ("lock_duration", "max_delivery_count")
_UNBOUNDED: Final = -1


def config_fields(settings: QueueSettings) -> dict[str, Any]:
    """The settings under the names and in the units of `QueueConfig`; only those given."""
    fields: dict[str, Any] = {}
    for name, value in settings.items():
        if name not in QueueSettings.__annotations__:
            raise InvalidArgument(
                f"unknown setting {name!r}; known are {', '.join(QueueSettings.__annotations__)}"
            )
        if value is None and name.startswith("dlq_"):
            value = _UNBOUNDED
        elif name in _DURATIONS:
            value = to_ms(value, name)  # type: ignore[arg-type]
        if name in _POSITIVE and (not isinstance(value, int) or value <= 0):
            raise InvalidArgument(f"{name} must be positive, got {settings.get(name)!r}")
        fields[f"{name}_ms" if name in _DURATIONS else name] = value
    return fields


def out_message(
    body: Body,
    *,
    message_id: str,
    group_id: str,
    subject: str,
    correlation_id: str,
    reply_to: str,
    content_type: str,
    properties: dict[str, str] | None,
    priority: int,
) -> OutMessage:
    """A message to send, checked."""
    message = OutMessage(
        body=_bytes(body),
        message_id=message_id,
        group_id=group_id,
        subject=subject,
        correlation_id=correlation_id,
        reply_to=reply_to,
        content_type=content_type,
        properties=properties or {},
        priority=priority,
    )
    _check_texts(message)
    return message


def out_messages(messages: Iterable[OutMessage | Body]) -> list[OutMessage]:
    if isinstance(messages, str | bytes | OutMessage):
        raise InvalidArgument("messages must be a collection of messages, not a single one")
    made: list[OutMessage] = []
    for message in messages:
        if isinstance(message, OutMessage):
            _check_texts(message)
            made.append(message)
        else:
            made.append(OutMessage(body=_bytes(message)))
    return made


def leases(items: Iterable[Lease | BaseMessage]) -> list[Lease]:
    return [item.lease if isinstance(item, BaseMessage) else (item[0], item[1]) for item in items]


def batch_size(value: int) -> int:
    return _in_range("max_messages", value, 1, MAX_BATCH)


def peek_size(value: int) -> int:
    return _in_range("max_messages", value, 1, MAX_PEEK)


def wait_ms(wait: Duration) -> int:
    value = to_ms(wait, "wait")
    if value > MAX_WAIT_MS:
        raise InvalidArgument(f"wait must be at most {MAX_WAIT_MS // 1000} seconds, got {wait!r}")
    return value


def receive_mode(mode: str) -> ReceiveMode:
    for known in RECEIVE_MODES:
        if mode == known:
            return known
    raise InvalidArgument(f"mode must be one of {', '.join(RECEIVE_MODES)}; got {mode!r}")


def state(value: str | None) -> str:
    if value is not None and value not in STATES:
        raise InvalidArgument(f"state must be one of {', '.join(STATES)}; got {value!r}")
    return value or ""


def _in_range(name: str, value: int, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidArgument(f"{name} must be {low} to {high}, got {value!r}")
    return value


def _bytes(body: Body) -> bytes:
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return _encodable("body", body)
    if isinstance(body, bytearray | memoryview):
        return bytes(body)
    raise InvalidArgument(f"body must be bytes or text, got {type(body).__name__}")


def _check_texts(message: OutMessage) -> None:
    for name in (
        "message_id",
        "group_id",
        "subject",
        "correlation_id",
        "reply_to",
        "content_type",
    ):
        if value := getattr(message, name):
            _encodable(name, value)
    if not isinstance(message.priority, int) or isinstance(message.priority, bool):
        raise InvalidArgument(f"priority must be an integer, got {message.priority!r}")
    for key, value in message.properties.items():
        _encodable("properties", key)
        _encodable("properties", value)


def _encodable(name: str, value: str) -> bytes:
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} must be text, got {type(value).__name__}")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"{name} must be valid Unicode text") from None

"""Arguments of the Python API, checked and turned into what operations take.

The wire clamps some values for the sake of existing clients; here they are refused, with
an error that names the accepted ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from mqlite.durations import Duration, to_ms
from mqlite.errors import InvalidArgument
from mqlite.integers import MAX_INT64, MIN_INT64
from mqlite.messages import BaseMessage
from mqlite.model import (
    MAX_BATCH,
    MAX_PEEK,
    MAX_PRIORITY,
    MAX_WAIT_MS,
    RECEIVE_MODES,
    SETTING_TYPES,
    STATES,
    Body,
    Lease,
    MessageFields,
    OutMessage,
    QueueSettings,
    ReceiveMode,
)

T = TypeVar("T")

_POSITIVE: Final = ("lock_duration", "max_delivery_count")
_UNBOUNDED: Final = -1
_SENDABLE: Final = re.compile(r"[!-~]+")


def check_known(given: Mapping[str, object], known: type, what: str) -> None:
    """Raises InvalidArgument for a name that is no key of the typed dict `known`."""
    if unknown := given.keys() - known.__annotations__.keys():
        raise InvalidArgument(
            f"unknown {what} {min(unknown)!r}; known are {', '.join(known.__annotations__)}"
        )


def config_fields(settings: QueueSettings) -> dict[str, Any]:
    """The settings under the names and in the units of `QueueConfig`; only those given."""
    fields: dict[str, Any] = {}
    check_known(settings, QueueSettings, "setting")
    for name, value in settings.items():
        in_ms = f"{name}_ms"
        stored_as = in_ms if in_ms in SETTING_TYPES else name
        fields[stored_as] = _setting(name, value, stored_as)
    return fields


def _setting(name: str, value: Any, stored_as: str) -> Any:
    """One setting in its stored form. Ranges are the engine's to check, kinds are checked here."""
    if value is None and name.startswith("dlq_"):
        return _UNBOUNDED
    kind = SETTING_TYPES[stored_as]
    if stored_as != name:
        stored: Any = to_ms(value, name)
    elif kind is int:
        stored = integer(value, name, _UNBOUNDED, MAX_INT64)
    elif kind is bool:
        stored = flag(value, name)
    elif kind is float:
        stored = _finite(value, name)
    else:
        stored = text(value, name)
    if name in _POSITIVE and stored <= 0:
        raise InvalidArgument(f"{name} must be positive, got {value!r}")
    return stored


def _finite(value: float, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidArgument(f"{field} must be a finite number, got {value!r}")
    return float(value)


def out_message(body: Body, fields: MessageFields) -> OutMessage:
    """A message to send, checked."""
    try:
        message = OutMessage(body=_bytes(body), **fields)  # type: ignore[arg-type]  # properties=None
    except TypeError:
        check_known(fields, MessageFields, "field")
        raise
    if message.properties is None:
        message.properties = {}
    return _checked(message)


def out_messages(messages: Iterable[OutMessage | Body]) -> list[OutMessage]:
    if isinstance(messages, str | bytes | OutMessage) or not isinstance(messages, Iterable):
        raise InvalidArgument("messages must be a collection of messages")
    made: list[OutMessage] = []
    for message in messages:
        if isinstance(message, OutMessage):
            _bytes(message.body)
            made.append(_checked(message))
        else:
            made.append(OutMessage(body=_bytes(message)))
    return made


def leases(items: Iterable[Lease | BaseMessage]) -> list[Lease]:
    found: list[Lease] = []
    for item in _each(items, "leases"):
        given = item.lease if isinstance(item, BaseMessage) else item
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise InvalidArgument(
                f"leases[{len(found)}] must be a message or (seq_number, lock_token), got"
                f" {type(given).__name__}"
            )
        found.append(lease(*given))
    return found


def _each(values: Iterable[T], field: str) -> Iterable[T]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidArgument(f"{field} must be a collection, got {type(values).__name__}")
    return values


def lease(number: int, lock_token: str) -> Lease:
    return seq_number(number), text(lock_token, "lock_token")


def seq_number(value: int, field: str = "seq_number") -> int:
    return integer(value, field, MIN_INT64, MAX_INT64)


def seq_numbers(values: Iterable[int]) -> list[int]:
    return [seq_number(value, "seq_numbers") for value in _each(values, "seq_numbers")]


def batch_size(value: int) -> int:
    return integer(value, "max_messages", 1, MAX_BATCH)


def peek_size(value: int) -> int:
    return integer(value, "max_messages", 1, MAX_PEEK)


def bound(value: int, field: str) -> int:
    """A limit of which 0 means none."""
    return integer(value, field, 0, MAX_INT64)


def ttl_ms(ttl: Duration | None) -> int:
    """A message's time to live; 0 for none given."""
    if ttl is None:
        return 0
    value = to_ms(ttl, "ttl")
    if not value:
        raise InvalidArgument("ttl must be positive; leave it out for none")
    return value


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


def flag(value: bool, field: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidArgument(f"{field} must be True or False, got {value!r}")
    return value


def integer(value: int, field: str, low: int, high: int) -> int:
    if value.__class__ is int and low <= value <= high:
        return value
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidArgument(f"{field} must be an integer from {low} to {high}, got {value!r}")
    return value


def text(value: str, field: str) -> str:
    """Text that can be stored: any, but no lone surrogates."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{field} must be text, got {type(value).__name__}")
    if not value.isascii():
        _encoded(value, field)
    return value


def bearer_token(value: str, field: str) -> str:
    """A token that a header can carry. Raises InvalidArgument, which does not repeat it."""
    if not _SENDABLE.fullmatch(text(value, field)):
        raise InvalidArgument(f"{field}: a token is printable ASCII without spaces")
    return value


def _encoded(value: str, field: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"{field} must be valid Unicode text") from None


def _bytes(body: Body) -> bytes:
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return _encoded(body, "body")
    if isinstance(body, bytearray | memoryview):
        return bytes(body)
    raise InvalidArgument(f"body must be bytes or text, got {type(body).__name__}")


def _checked(message: OutMessage) -> OutMessage:
    texts = (
        message.message_id,
        message.group_id,
        message.subject,
        message.correlation_id,
        message.reply_to,
        message.content_type,
    )
    try:
        "".join(texts).encode()
    except (TypeError, UnicodeEncodeError):
        for field, value in zip(_TEXTS, texts, strict=True):
            text(value, field)
    integer(message.priority, "priority", -MAX_PRIORITY, MAX_PRIORITY)
    if not isinstance(message.properties, dict):
        raise InvalidArgument(f"properties must be a dict, got {type(message.properties).__name__}")
    for key, value in message.properties.items():
        text(key, "a key of properties")
        text(value, "a value of properties")
    return message


_TEXTS: Final = (
    "message_id",
    "group_id",
    "subject",
    "correlation_id",
    "reply_to",
    "content_type",
)

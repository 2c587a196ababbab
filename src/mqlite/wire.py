"""The requests and answers of the mqlite.v1 contract, shared by the broker and the clients.

Requests are decoded strictly: exact field names, nothing unknown at any depth, integers
within 64 bits. A field given as `null` is the same as one left out, so every request field
may be None. Times are epoch milliseconds, durations milliseconds. Stored messages, counts,
batch results and filter tests travel as they are (`mqlite.model`).
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable
from typing import Annotated, Any, Final, TypeVar

import msgspec

from mqlite.errors import InvalidArgument, MessageTooLarge
from mqlite.model import (
    ClaimOrder,
    Kind,
    MaxCounts,
    MessageData,
    OrderingMode,
    OutMessage,
    QueueConfig,
    QueueInfo,
    RenewResult,
    SettleResult,
    StoreStatus,
)

MAX_REQUEST_BYTES: Final = 32 * 1024 * 1024

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
RequestType = TypeVar("RequestType", bound="Request")


class Request(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all requests and of what is nested in them."""


class WireMessage(Request):
    """A message as it is sent, its body in base64.

    One shape serves both directions, so what only the broker sets is accepted and ignored.
    """

    body: str | None = None
    message_id: str | None = None
    group_id: str | None = None
    subject: str | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    content_type: str | None = None
    properties: dict[str, str | None] | None = None
    priority: Int64 | None = None
    seq_number: Int64 | None = None
    enqueued_at_ms: Int64 | None = None
    expires_at_ms: Int64 | None = None
    visible_at_ms: Int64 | None = None
    locked_until_ms: Int64 | None = None
    delivery_count: Int64 | None = None
    lock_token: str | None = None
    state: str | None = None
    dead_letter_reason: str | None = None
    dead_letter_description: str | None = None
    failure_count: Int64 | None = None
    lease_ms: Int64 | None = None


class SendRequest(Request):
    """Send and Schedule."""

    queue: str | None = None
    messages: list[WireMessage] | None = None
    scheduled_enqueue_time_ms: Int64 | None = None
    ttl_ms: Int64 | None = None


class ReceiveRequest(Request):
    """`receive_mode` 1 is receive-and-delete; every other number is peek-lock."""

    queue: str | None = None
    max_messages: Int64 | None = None
    wait_time_ms: Int64 | None = None
    receive_mode: Int64 | None = None
    receive_attempt_id: str | None = None


class ReceiveDeferredRequest(Request):
    queue: str | None = None
    seq_numbers: list[Int64] | None = None


class SettleRequest(Request):
    """Complete, Abandon, Reject, Defer and Renew; each reads the fields that concern it."""

    queue: str | None = None
    seq_number: Int64 | None = None
    lock_token: str | None = None
    delay_ms: Int64 | None = None
    dead_letter_reason: str | None = None
    dead_letter_description: str | None = None


class LeaseItem(Request):
    seq_number: Int64 | None = None
    lock_token: str | None = None


class BatchRequest(Request):
    """CompleteBatch and RenewBatch."""

    queue: str | None = None
    messages: list[LeaseItem] | None = None


class CancelRequest(Request):
    queue: str | None = None
    seq_number: Int64 | None = None


class PeekRequest(Request):
    queue: str | None = None
    from_seq: Int64 | None = None
    state: str | None = None
    max: Int64 | None = None


class StatsRequest(Request):
    queue: str | None = None


class ConfigFields(Request):
    """A queue's settings; see `QueueConfig` for what they mean."""

    kind: str | None = None
    lock_duration_ms: Int64 | None = None
    max_delivery_count: Int64 | None = None
    default_ttl_ms: Int64 | None = None
    dead_letter_on_expire: bool | None = None
    dedup_window_ms: Int64 | None = None
    ordering_mode: str | None = None
    dlq_max_age_ms: Int64 | None = None
    dlq_max_count: Int64 | None = None
    dlq_max_bytes: Int64 | None = None
    retry_initial_delay_ms: Int64 | None = None
    retry_max_delay_ms: Int64 | None = None
    retry_multiplier: float | None = None
    retry_jitter: float | None = None
    max_counts: str | None = None
    retain_completed_ms: Int64 | None = None
    keep_leases: bool | None = None
    claim_order: str | None = None


class CreateQueueRequest(Request):
    name: str | None = None
    config: ConfigFields | None = None


class DeleteQueueRequest(Request):
    name: str | None = None
    generation: str | None = None


class PauseRequest(Request):
    """PauseQueue and ResumeQueue."""

    name: str | None = None


class FilterFields(Request):
    expr: str | None = None


class SubscribeRequest(Request):
    topic: str | None = None
    name: str | None = None
    filter: FilterFields | None = None


class UnsubscribeRequest(Request):
    topic: str | None = None
    name: str | None = None
    generation: str | None = None


class TestFilterRequest(Request):
    __test__ = False  # pytest takes a class of this name for a test

    expr: str | None = None
    message: WireMessage | None = None


class RedriveRequest(Request):
    queue: str | None = None
    target: str | None = None
    max: Int64 | None = None
    older_than_ms: Int64 | None = None
    rate_per_sec: Int64 | None = None


class PurgeRequest(Request):
    queue: str | None = None
    max: Int64 | None = None
    older_than_ms: Int64 | None = None


class EmptyResponse(msgspec.Struct):
    """CreateQueue, Subscribe, PauseQueue and ResumeQueue."""


class SendResponse(msgspec.Struct):
    """One number per message; None from a broker that was sent no messages."""

    seq_numbers: list[int] | None


class MessagesResponse(msgspec.Struct, omit_defaults=True):
    """Receive, ReceiveDeferred and Peek. `truncated`: ReceiveDeferred stopped at the byte
    budget before the last number."""

    messages: list[MessageData]
    truncated: bool = False


class SettleResponse(msgspec.Struct):
    ok: bool = True


class CompleteBatchResponse(msgspec.Struct):
    results: list[SettleResult]


class RenewBatchResponse(msgspec.Struct):
    results: list[RenewResult]


class DeletedResponse(msgspec.Struct):
    """DeleteQueue and Unsubscribe."""

    deleted: bool = True


class QueueEntry(msgspec.Struct, kw_only=True):
    """A queue in ListQueues: the six fields every broker reports, then what only some do."""

    name: str
    kind: Kind
    lock_duration_ms: int
    max_delivery_count: int
    default_ttl_ms: int
    dedup_window_ms: int
    generation: str = ""
    paused: bool = False
    dead_letter_on_expire: bool = True
    ordering_mode: OrderingMode = "standard"
    dlq_max_age_ms: int = 0
    dlq_max_count: int = 0
    dlq_max_bytes: int = 0
    retry_initial_delay_ms: int = 0
    retry_max_delay_ms: int = 0
    retry_multiplier: float = 2.0
    retry_jitter: float = 0.0
    max_counts: MaxCounts = "deliveries"
    retain_completed_ms: int = 0
    keep_leases: bool = False
    claim_order: ClaimOrder = "sequence"

    @classmethod
    def of(cls, info: QueueInfo) -> QueueEntry:
        return cls(
            name=info.name,
            kind=info.kind,
            generation=info.generation,
            paused=info.paused,
            **msgspec.structs.asdict(info.config),
        )

    def info(self) -> QueueInfo:
        settings = {field: getattr(self, field) for field in QueueConfig.__struct_fields__}
        return QueueInfo(
            name=self.name,
            kind=self.kind,
            generation=self.generation,
            paused=self.paused,
            config=QueueConfig(**settings),
        )


class ListQueuesResponse(msgspec.Struct):
    queues: list[QueueEntry]


class SubscriptionEntry(msgspec.Struct, omit_defaults=True):
    topic: str
    name: str
    expr: str = ""


class ListSubscriptionsResponse(msgspec.Struct):
    subscriptions: list[SubscriptionEntry]


class RedriveResponse(msgspec.Struct, omit_defaults=True):
    """`complete` is false when the call was cut short; asking again goes on."""

    moved: int
    complete: bool = True


class PurgeResponse(msgspec.Struct, omit_defaults=True):
    """`complete` is false when the call was cut short; asking again goes on."""

    purged: int
    complete: bool = True


class StatusResponse(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A snapshot for an operator; the fields after `auth` are additions of this broker."""

    version: str
    backend: str
    remote: bool
    location: str
    schema_version: str
    ping_ms: int
    db_size_bytes: int
    queues: int
    subscriptions: int
    uptime_ms: int
    auth: bool
    wal_size_bytes: int = 0
    free_pages: int = 0
    sqlite_version: str = ""
    pragmas: dict[str, str | int] = {}
    warnings: list[str] = []

    @classmethod
    def of(cls, status: StoreStatus, *, version: str, uptime_ms: int, auth: bool) -> StatusResponse:
        fields = msgspec.structs.asdict(status)
        known = {name: fields[name] for name in cls.__struct_fields__ if name in fields}
        return cls(version=version, uptime_ms=uptime_ms, auth=auth, **known)

    def status(self) -> StoreStatus:
        return StoreStatus(
            **{
                name: getattr(self, name)
                for name in StoreStatus.__struct_fields__
                if hasattr(self, name)
            }
        )


class ErrorBody(msgspec.Struct):
    """The answer of every request that failed."""

    code: str
    message: str


class DiscoveryCard(msgspec.Struct, kw_only=True):
    """`GET /`: what this is, and the paths it serves."""

    name: str
    description: str
    version: str
    status: str
    auth: str
    docs: str
    endpoints: list[str]
    health: str


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
        raise InvalidArgument(str(problem)) from None
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

"""The nouns of the queue: messages, queue settings, and what operations answer.

Field names are those of the wire contract; times are epoch milliseconds, durations
milliseconds, sizes bytes. A zero or empty value means "none".
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypedDict

import msgspec

from mqlite.durations import Duration

State = Literal["active", "locked", "deferred", "scheduled", "dead_lettered"]
Kind = Literal["queue", "subscription"]
OrderingMode = Literal["standard", "group_fifo", "strict_fifo"]
MaxCounts = Literal["deliveries", "failures"]
ClaimOrder = Literal["sequence", "due_time"]
ReceiveMode = Literal["peek_lock", "receive_and_delete"]

STATES: Final[tuple[State, ...]] = ("active", "locked", "deferred", "scheduled", "dead_lettered")
ORDERING_MODES: Final[tuple[OrderingMode, ...]] = ("standard", "group_fifo", "strict_fifo")
RECEIVE_MODES: Final[tuple[ReceiveMode, ...]] = ("peek_lock", "receive_and_delete")

MAX_SEND: Final = 100_000
MAX_BATCH: Final = 256
MAX_WAIT_MS: Final = 20_000
MAX_RENEW_BATCH: Final = 512
MAX_DEFERRED_BATCH: Final = 256
MAX_PEEK: Final = 1000
MAX_NAME_BYTES: Final = 255
MAX_PRIORITY: Final = 1000
MAX_MESSAGE_BYTES: Final = 1024 * 1024
RESPONSE_BODY_BYTES: Final = 32 * 1024 * 1024


Body = bytes | bytearray | memoryview | str
Lease = tuple[int, str]
"""A sequence number and the lock token that holds it."""


class OutMessage(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A message to send.

    `body` is opaque bytes, at most the queue's size limit (1 MiB by default).
    `message_id` is the dedup key where the queue has a dedup window; `group_id` the
    ordering key; `priority` -1000 to 1000, higher first.
    """

    body: bytes = b""
    message_id: str = ""
    group_id: str = ""
    subject: str = ""
    correlation_id: str = ""
    reply_to: str = ""
    content_type: str = ""
    properties: dict[str, str] = {}
    priority: int = 0


class MessageFields(TypedDict, total=False):
    """What `send` takes beside the body; see `OutMessage`."""

    message_id: str
    group_id: str
    subject: str
    correlation_id: str
    reply_to: str
    content_type: str
    properties: dict[str, str] | None
    priority: int


class MessageData(msgspec.Struct, omit_defaults=True):
    """A stored message as receive and peek report it; also its form on the wire.

    `lease_ms` is what remained of the lease when the answer was made, so that a client
    needs no synchronised clock.
    """

    seq_number: int = 0
    enqueued_at_ms: int = 0
    expires_at_ms: int = 0
    visible_at_ms: int = 0
    locked_until_ms: int = 0
    delivery_count: int = 0
    lock_token: str = ""
    state: str = ""
    dead_letter_reason: str = ""
    dead_letter_description: str = ""
    message_id: str = ""
    correlation_id: str = ""
    reply_to: str = ""
    group_id: str = ""
    content_type: str = ""
    subject: str = ""
    properties: dict[str, str] = {}
    body: bytes = b""
    priority: int = 0
    failure_count: int = 0
    lease_ms: int = 0

    @property
    def text(self) -> str:
        """The body as UTF-8 text. Raises UnicodeDecodeError."""
        return self.body.decode()

    def json(self) -> Any:
        """The body decoded as JSON. Raises ValueError."""
        return json.loads(self.body)

    @property
    def enqueued_at(self) -> datetime:
        return datetime.fromtimestamp(self.enqueued_at_ms / 1000, UTC)

    @property
    def locked_until(self) -> datetime | None:
        """When the lease runs out on the broker's clock; None where there is no lease."""
        if not self.locked_until_ms:
            return None
        return datetime.fromtimestamp(self.locked_until_ms / 1000, UTC)

    def __repr__(self) -> str:
        """Never the body, the properties or the lock token."""
        return (
            f"<{type(self).__name__} seq_number={self.seq_number} "
            f"{f'state={self.state} ' if self.state else ''}"
            f"delivery_count={self.delivery_count} body={len(self.body)} bytes>"
        )


class QueueConfig(msgspec.Struct, kw_only=True, frozen=True):
    """A queue's settings. `dlq_*`: 0 inherits the engine's bound, -1 means unbounded."""

    lock_duration_ms: int = 30_000
    max_delivery_count: int = 10
    default_ttl_ms: int = 0
    dead_letter_on_expire: bool = True
    dedup_window_ms: int = 0
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


SETTING_TYPES: Final[dict[str, Any]] = {
    field.name: field.type for field in msgspec.structs.fields(QueueConfig)
}
EXTENSION_SETTINGS: Final = frozenset(
    {
        "retry_initial_delay_ms",
        "retry_max_delay_ms",
        "retry_multiplier",
        "retry_jitter",
        "max_counts",
        "retain_completed_ms",
        "keep_leases",
        "claim_order",
    }
)
"""Settings beyond the mqlite contract: left out of an update they keep their value,
because a client that does not know them cannot mean to reset them."""


class QueueSettings(TypedDict, total=False):
    """Settings as callers give them to `create_queue`; see `QueueConfig`."""

    lock_duration: Duration
    max_delivery_count: int
    default_ttl: Duration
    dead_letter_on_expire: bool
    dedup_window: Duration
    ordering_mode: OrderingMode
    dlq_max_age: Duration | None
    dlq_max_count: int | None
    dlq_max_bytes: int | None
    retry_initial_delay: Duration
    retry_max_delay: Duration
    retry_multiplier: float
    retry_jitter: float
    max_counts: MaxCounts
    retain_completed: Duration
    keep_leases: bool
    claim_order: ClaimOrder


class QueueInfo(msgspec.Struct, kw_only=True, frozen=True):
    """A queue as `list_queues` reports it. `generation` identifies this incarnation of
    the name; `delete_queue` is fenced by it."""

    name: str
    kind: Kind
    generation: str
    config: QueueConfig
    paused: bool = False


class SubscriptionInfo(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A subscription; an empty `expr` matches every message."""

    topic: str
    name: str
    expr: str = ""


class FilterTest(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What trying a filter showed. `valid`: it can be used; `ran`: there was a sample message;
    `matched`: the filter lets it through; `error`: why it does not compile, or failed."""

    valid: bool
    error: str = ""
    ran: bool
    matched: bool


class QueueStats(msgspec.Struct, kw_only=True, frozen=True):
    """Messages of a queue by state. The age is that of the oldest active or locked
    message, 0 when there is none."""

    queue: str
    active: int = 0
    locked: int = 0
    deferred: int = 0
    scheduled: int = 0
    dead_lettered: int = 0
    total: int = 0
    oldest_message_age_ms: int = 0


class SettleResult(msgspec.Struct, frozen=True):
    """One slot of a batch settlement; positional. `ok` is false where the token held no
    live lease."""

    seq_number: int
    ok: bool


class RenewResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """One slot of a batch renewal; positional. The deadline is the one committed.

    `lease_deadline` is that of a message (`mqlite.messages.BaseMessage`); it does not travel."""

    seq_number: int
    ok: bool
    locked_until_ms: int = 0
    lease_ms: int = 0
    lease_deadline: float = 0.0


class MoveResult(msgspec.Struct, frozen=True):
    """How many dead letters were moved or purged; `complete` is false when the call was
    cut short."""

    count: int
    complete: bool = True


class StoreStatus(msgspec.Struct, kw_only=True, frozen=True):
    """A snapshot of the store for an operator; never holds a credential.

    `pragmas` are the settings read back from the open database, `warnings` what an
    operator should know about them. Sizes are those of files: 0 for a queue in memory.
    """

    backend: str
    location: str
    schema_version: str
    ping_ms: int
    db_size_bytes: int
    queues: int
    subscriptions: int
    remote: bool = False
    wal_size_bytes: int = 0
    free_pages: int = 0
    sqlite_version: str = ""
    pragmas: dict[str, str | int] = {}
    warnings: list[str] = []

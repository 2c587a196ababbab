"""What a broker answers, field by field."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from mqlite.errors import MqliteError, Unavailable
from mqlite.model import (
    ClaimOrder,
    Kind,
    MaxCounts,
    MessageData,
    OrderingMode,
    QueueConfig,
    QueueInfo,
    RenewResult,
    SettleResult,
    StoreStatus,
    SubscriptionInfo,
)

MOVE_MS: Final = 20_000
"""Redrive and Purge answer with what is done by then: below the time a client or a stop
waits for an answer."""

NO_SUCH_PATH: Final = "no such path"
"""So begins what a broker says of a path that it does not know; clients tell by it that it is
older than an operation."""

_MAX_ERROR_TEXT: Final = 1000


class EmptyResponse(msgspec.Struct):
    """CreateQueue, Subscribe, PauseQueue and ResumeQueue."""


class SlotResult(msgspec.Struct, omit_defaults=True):
    """What became of one message: its number, 0 where no subscription accepted it; or, where
    it was refused by itself, the code and message of the error."""

    seq_number: int | UnsetType = UNSET
    code: str = ""
    message: str = ""


class SendResponse(msgspec.Struct):
    """One number per message; None from a broker that was sent no messages. `results` only
    where the request asked for them."""

    seq_numbers: list[int] | None
    results: list[SlotResult] | UnsetType = UNSET


class ReceiveResponse(msgspec.Struct, omit_defaults=True):
    """`waited_ms`: for how long the broker waited, so that its client, who counts from before
    it asked, can tell when the leases began."""

    messages: list[MessageData]
    waited_ms: int = 0


class MessagesResponse(msgspec.Struct, omit_defaults=True):
    """ReceiveDeferred and Peek. `truncated`: ReceiveDeferred stopped at the byte budget before
    the last number."""

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


class ListSubscriptionsResponse(msgspec.Struct):
    subscriptions: list[SubscriptionInfo]


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


class ErrorBody(msgspec.Struct, omit_defaults=True):
    """The answer of every request that failed. `reason`, an addition of this broker, says why
    it is `unavailable`."""

    code: str
    message: str
    reason: str = ""

    @classmethod
    def of(cls, problem: MqliteError) -> ErrorBody:
        """Its text is cut: a name in it may be as long as the request was."""
        reason = problem.reason if isinstance(problem, Unavailable) else ""
        return cls(problem.code, str(problem)[:_MAX_ERROR_TEXT], reason)


class DiscoveryCard(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`GET /`: what this is, and the paths it serves."""

    name: str
    description: str
    version: str
    status: str
    auth: str
    docs: str
    endpoints: list[str]
    health: str
    metrics: str | None = None

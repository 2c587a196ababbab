"""The words an observation is made of. All are fixed: what is measured can be counted on,
and no name from outside, but that of a queue, becomes a label."""

from __future__ import annotations

from typing import Final, Literal, get_args

Access = Literal["embedded", "manage", "monitor", "anonymous"]
"""What the one who asks may do; `embedded` is the program that opened the queue."""

CollectionState = Literal["available", "unavailable"]
HttpState = Literal["available", "not_applicable"]
Operation = Literal["read", "write", "transaction"]
Outcome = Literal["ok", "error", "rejected", "outcome_unknown"]
ErrorCode = Literal[
    "canceled",
    "closed",
    "busy",
    "connection",
    "full",
    "corrupt",
    "io",
    "application",
    "outcome_unknown",
    "other",
]
Category = Literal[
    "authentication",
    "rate_limit",
    "unavailable",
    "dns",
    "tls",
    "timeout",
    "protocol",
    "constraint",
    "schema",
    "storage",
    "busy",
    "interrupted",
    "outcome_unknown",
    "application",
    "other",
]
"""Kinds of failure, as far as an error tells them apart. The first seven are those of a
database behind a network; a local file fails in none of these ways."""

TaskOutcome = Literal["never", "ok", "failed", "interrupted"]
FilterStage = Literal["compile", "evaluate"]
AuthenticationOutcome = Literal[
    "success",
    "missing",
    "invalid",
    "expired",
    "revoked",
    "permission_denied",
    "backend_error",
]

EVENTS: Final = (
    "enqueued",
    "scheduled",
    "deduplicated",
    "dedup_conflict",
    "delivered",
    "redelivered",
    "completed",
    "receive_deleted",
    "abandoned",
    "snoozed",
    "released",
    "deferred",
    "rejected",
    "dead_lettered",
    "ttl_discarded",
    "retention_deleted",
    "purged",
    "canceled",
    "redriven",
    "lock_expired",
    "recovered",
    "activated",
)
"""Effects on messages. Two are not upstream's: `snoozed`, given back by intention and not for
a failure, and `released`, a delivery taken back as if it had never been. Without them
deliveries and what became of them would not agree."""

FILTER_EVENTS: Final[dict[str, FilterStage]] = {
    "filter_uncompiled": "compile",
    "filter_failed": "evaluate",
}
"""Effects that are no message's: one that a filter kept from its subscription by failing."""

OPERATIONS: Final[tuple[Operation, ...]] = get_args(Operation)
ERROR_CODES: Final[tuple[ErrorCode, ...]] = get_args(ErrorCode)
FILTER_STAGES: Final[tuple[FilterStage, ...]] = get_args(FilterStage)
AUTHENTICATION: Final[tuple[AuthenticationOutcome, ...]] = get_args(AuthenticationOutcome)

STORAGE_RESULTS: Final[tuple[tuple[Outcome, str], ...]] = (
    ("ok", ""),
    *(("error", code) for code in ERROR_CODES if code not in ("application", "outcome_unknown")),
    ("rejected", "application"),
    ("outcome_unknown", "outcome_unknown"),
)
"""How a storage operation may end: the outcome, and the code of its error."""

TASKS: Final = ("locks", "scheduled", "ttl", "dedup", "receipts", "retention", "reclaim")
"""The maintenance that every observation reports; a store may have more."""

REQUEST_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20)
"""Upper bounds of a handler's histogram, in seconds. They are mqlite's: dashboards know them."""

STORAGE_BOUNDS: Final = (0.0001, 0.00025, 0.0005, *REQUEST_BOUNDS)
"""Upper bounds for storage operations and maintenance passes, in seconds: most take less than
a millisecond."""

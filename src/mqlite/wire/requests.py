"""What is asked of a broker, field by field."""

from __future__ import annotations

from typing import Annotated

import msgspec

from mqlite.integers import MAX_INT64, MIN_INT64

Int64 = Annotated[int, msgspec.Meta(ge=MIN_INT64, le=MAX_INT64)]


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
    """Send and Schedule. `results` asks for what became of each message by itself."""

    queue: str | None = None
    messages: list[WireMessage] | None = None
    scheduled_enqueue_time_ms: Int64 | None = None
    ttl_ms: Int64 | None = None
    results: bool | None = None


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
    """Complete, Abandon, Release, Reject, Defer and Renew; each reads the fields that concern
    it."""

    queue: str | None = None
    seq_number: Int64 | None = None
    lock_token: str | None = None
    delay_ms: Int64 | None = None
    snooze: bool | None = None
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

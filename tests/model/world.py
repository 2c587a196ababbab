"""What the naive model knows: plain rows in plain lists, and nothing of the engine's.

The words of the specification are the only source here. No lines, no heads, no indexes:
whoever wants to know something looks through all the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SETTINGS: dict[str, Any] = {
    "lock_duration_ms": 30_000,
    "max_delivery_count": 10,
    "default_ttl_ms": 0,
    "dead_letter_on_expire": True,
    "dedup_window_ms": 0,
    "ordering_mode": "standard",
    "dlq_max_age_ms": 0,
    "dlq_max_count": 0,
    "dlq_max_bytes": 0,
}
"""Documented settings: left out of an update they return to their default."""

EXTENSIONS: dict[str, Any] = {
    "retry_initial_delay_ms": 0,
    "retry_max_delay_ms": 0,
    "retry_multiplier": 2.0,
    "retry_jitter": 0.0,
    "max_counts": "deliveries",
    "retain_completed_ms": 0,
    "keep_leases": False,
    "claim_order": "sequence",
}
"""Additional settings: left out of an update they keep their value."""

LIVE = ("active", "locked", "deferred", "scheduled")
STATES = (*LIVE, "dead_lettered")


class Refused(Exception):
    """The model's answer is an error, of the class of this name."""


@dataclass(eq=False)
class Row:
    seq: int
    state: str
    enqueued_at: int
    visible_at: int
    expires_at: int
    ttl_ms: int
    sort_at: int
    body: bytes
    priority: int = 0
    group: str = ""
    message_id: str = ""
    subject: str = ""
    correlation_id: str = ""
    reply_to: str = ""
    content_type: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    locked_until: int = 0
    token: str = ""
    delivery_count: int = 0
    failure_count: int = 0
    reason: str = ""
    description: str = ""

    def unlock(self, state: str) -> None:
        self.state, self.token, self.locked_until = state, "", 0

    def received(self) -> dict[str, Any]:
        """As receive reports it: never its state, visibility or expiry."""
        return {
            **self._content(),
            "lock_token": self.token,
            "locked_until_ms": self.locked_until,
        }

    def peeked(self) -> dict[str, Any]:
        """As peek reports it: never its lock token."""
        return {
            **self._content(),
            "state": self.state,
            "expires_at_ms": self.expires_at,
            "visible_at_ms": self.visible_at,
            "locked_until_ms": self.locked_until,
            "dead_letter_reason": self.reason,
            "dead_letter_description": self.description,
        }

    def _content(self) -> dict[str, Any]:
        return {
            "seq_number": self.seq,
            "enqueued_at_ms": self.enqueued_at,
            "delivery_count": self.delivery_count,
            "failure_count": self.failure_count,
            "priority": self.priority,
            "group_id": self.group,
            "message_id": self.message_id,
            "subject": self.subject,
            "correlation_id": self.correlation_id,
            "reply_to": self.reply_to,
            "content_type": self.content_type,
            "properties": self.properties,
            "body": self.body,
        }


@dataclass(eq=False)
class Queue:
    id: int
    name: str
    kind: str
    settings: dict[str, Any]
    paused: bool = False
    rows: list[Row] = field(default_factory=list)
    finished: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Outcome and time of deliveries that are done with, by sequence number."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["settings"][name]
        except KeyError:
            raise AttributeError(name) from None

    def row(self, seq: int) -> Row | None:
        return next((row for row in self.rows if row.seq == seq), None)

    def of(self, *states: str) -> list[Row]:
        return [row for row in self.rows if row.state in states]

    def sort_at(self, visible_at: int) -> int:
        return visible_at if self.claim_order == "due_time" else 0


@dataclass
class World:
    """Everything there is. `max_bytes` bounds a body, `answer_bytes` an answer's bodies, and
    `inherited` the dead letters of queues that have no bounds of their own."""

    now: int
    max_bytes: int
    answer_bytes: int
    inherited: dict[str, int]
    last_seq: int = 0
    last_queue: int = 0
    queues: dict[str, Queue] = field(default_factory=dict)
    topics: dict[str, str] = field(default_factory=dict)
    """The topic of each subscription, by the subscription's name."""
    dedup: dict[tuple[int, str], tuple[bytes, int, int]] = field(default_factory=dict)
    """Body, sequence number and time of the first send, by queue and key."""
    receipts: dict[tuple[Any, ...], int] = field(default_factory=dict)
    """When a settlement is forgotten, by the whole request."""
    attempts: dict[tuple[int, str], tuple[str, list[Any], int]] = field(default_factory=dict)
    """Mode, answer and expiry of a receive, by queue and attempt id."""
    tokens: set[str] = field(default_factory=set)
    """Every token there ever was: none comes twice."""

    def queue(self, name: str) -> Queue:
        if not name:
            raise Refused("InvalidArgument")
        if name not in self.queues:
            raise Refused("NotFound")
        return self.queues[name]

    def subscriptions(self, topic: str) -> list[str]:
        return sorted(name for name, owner in self.topics.items() if owner == topic)

    def moments(self) -> list[int]:
        """When something is due from now on."""
        rows = [row for queue in self.queues.values() for row in queue.rows]
        times = {
            time for row in rows for time in (row.locked_until, row.visible_at, row.expires_at)
        }
        times |= {*self.receipts.values(), *(made[2] for made in self.attempts.values())}
        times |= {
            finished_at + queue.retain_completed_ms
            for queue in self.queues.values()
            for _, finished_at in queue.finished.values()
        }
        return sorted(time for time in times if time >= self.now)

    def take_seq(self) -> int:
        self.last_seq += 1
        return self.last_seq

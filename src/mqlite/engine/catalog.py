"""What a name stands for: queues with their settings, topics with their subscriptions."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import msgspec

from mqlite.engine.filters import Matches, compiled
from mqlite.engine.names import check_present, no_queue
from mqlite.engine.steps import Resolve, Row, Statement, Steps, operation
from mqlite.model import SETTING_TYPES, Kind, QueueConfig

SETTINGS: Final = tuple(SETTING_TYPES)
_COLUMNS: Final = ", ".join(("id", "name", "kind", "paused", *SETTINGS))
_FLAGS: Final = tuple(index for index, kind in enumerate(SETTING_TYPES.values()) if kind is bool)

SELECT_QUEUE: Final = f"SELECT {_COLUMNS} FROM mqlite_queues WHERE name = ? AND deleted_at IS NULL"
SELECT_QUEUE_BY_ID: Final = (
    f"SELECT {_COLUMNS} FROM mqlite_queues WHERE id = ? AND deleted_at IS NULL"
)
SELECT_QUEUES: Final = (
    f"SELECT {_COLUMNS} FROM mqlite_queues WHERE deleted_at IS NULL ORDER BY name"
)
SELECT_TOPIC: Final = (
    "SELECT name, queue_id, expr FROM mqlite_subscriptions WHERE topic = ? ORDER BY name"
)


class Queue(msgspec.Struct, frozen=True):
    """A queue or a subscription's backing queue. `id` is never reused."""

    id: int
    name: str
    kind: Kind
    paused: bool
    config: QueueConfig

    @property
    def strict(self) -> bool:
        return self.config.ordering_mode == "strict_fifo"

    @property
    def generation(self) -> str:
        return str(self.id)

    def sort_at(self, visible_at: int) -> int:
        """What claims sort by between priority and sequence number."""
        return visible_at if self.config.claim_order == "due_time" else 0

    def line_of(self, group_id: str | None) -> str | None:
        """The line in which a live message of this group stands, None if in none."""
        return "" if self.strict else group_id or None


class Subscription(msgspec.Struct, frozen=True):
    name: str
    queue_id: int
    expr: str


class Topic(msgspec.Struct, frozen=True, dict=True):
    """The subscriptions of a topic, in ascending name order; never empty."""

    name: str
    subscriptions: tuple[Subscription, ...]

    @cached_property
    def filters(self) -> tuple[Matches, ...]:
        """The compiled filter of each subscription, in order."""
        return tuple(compiled(subscription.expr).matches for subscription in self.subscriptions)


def queue_from_row(row: Row) -> Queue:
    id_, name, kind, paused, *settings = row
    for index in _FLAGS:
        settings[index] = bool(settings[index])
    return Queue(
        id_, name, kind, bool(paused), QueueConfig(**dict(zip(SETTINGS, settings, strict=True)))
    )


def load(name: str) -> Steps[Queue | Topic | None]:
    """What `name` stands for, from the database. A topic has no row of its own: it is
    the set of subscriptions that name it."""
    rows = yield Statement(SELECT_QUEUE, (name,))
    if rows:
        return queue_from_row(rows[0])
    rows = yield Statement(SELECT_TOPIC, (name,))
    if rows:
        return Topic(name, tuple(Subscription(*row) for row in rows))
    return None


@operation(reads=True)
def look_up(name: str) -> Steps[Queue | Topic | None]:
    """What `name` stands for."""
    found: Queue | Topic | None = yield Resolve(name)
    return found


def load_by_id(id_: int) -> Steps[Queue | None]:
    rows = yield Statement(SELECT_QUEUE_BY_ID, (id_,))
    return queue_from_row(rows[0]) if rows else None


def resolve_queue(name: str) -> Steps[Queue | None]:
    """The queue or backing queue of this name; a topic is no queue."""
    found: Queue | Topic | None = yield Resolve(name)
    return found if isinstance(found, Queue) else None


def existing_queue(name: str, field: str = "queue") -> Steps[Queue]:
    """The queue or backing queue of this name. Raises InvalidArgument naming `field` for what
    is no name, NotFound."""
    check_present(name, field)
    found: Queue | Topic | None = yield Resolve(name)
    if not isinstance(found, Queue):
        raise no_queue(name)
    return found

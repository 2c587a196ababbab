"""Subscriptions: the topic is nothing but the set of them."""

from __future__ import annotations

from typing import Final

from mqlite.engine import queues
from mqlite.engine.catalog import Queue, Topic, resolve_queue
from mqlite.engine.filters import check_expr
from mqlite.engine.names import check_name, check_present
from mqlite.engine.steps import NOW, Changed, Resolve, Statement, Steps, operation
from mqlite.errors import NameConflict, NotFound
from mqlite.model import QueueConfig, SubscriptionInfo

SELECT_TOPIC_OF: Final = "SELECT topic FROM mqlite_subscriptions WHERE queue_id = ?"
INSERT_SUBSCRIPTION: Final = """
    INSERT INTO mqlite_subscriptions (queue_id, topic, name, expr, created_at, updated_at)
    VALUES (?, ?, ?, ?, ?, ?)
"""
UPDATE_EXPR: Final = "UPDATE mqlite_subscriptions SET expr = ?, updated_at = ? WHERE queue_id = ?"
DELETE_SUBSCRIPTION: Final = "DELETE FROM mqlite_subscriptions WHERE queue_id = ?"
SELECT_SUBSCRIPTIONS: Final = (
    "SELECT topic, name, expr FROM mqlite_subscriptions ORDER BY topic, name"
)
SELECT_BACKING_QUEUE: Final = (
    "SELECT queue_id FROM mqlite_subscriptions WHERE topic = ? AND name = ?"
)


@operation()
def subscribe(topic: str, name: str, expr: str = "") -> Steps[None]:
    """Create a subscription with a backing queue of its name, or replace its filter.

    Raises InvalidArgument, NameConflict.
    """
    check_name(topic, "topic")
    check_name(name, "name")
    if topic == name:
        raise NameConflict("a subscription cannot have the name of its topic")
    check_expr(expr)
    if (yield from resolve_queue(topic)) is not None:
        raise NameConflict(f"topic {topic!r} already names a queue or subscription")
    found: Queue | Topic | None = yield Resolve(name)
    if isinstance(found, Topic):
        raise NameConflict(f"{name!r} is a topic")
    if found is None:
        yield from queues.insert_queue(name, "subscription", QueueConfig())
        found = yield Resolve(name)
        assert isinstance(found, Queue)
    elif found.kind != "subscription":
        raise NameConflict(f"{name!r} is a queue")
    yield from _attach(found, topic, expr)
    yield Changed(topic)


def _attach(queue: Queue, topic: str, expr: str) -> Steps[None]:
    now: int = yield NOW
    owner = yield Statement(SELECT_TOPIC_OF, (queue.id,))
    if not owner:
        yield Statement(INSERT_SUBSCRIPTION, (queue.id, topic, queue.name, expr, now, now))
    elif owner[0][0] != topic:
        raise NameConflict(f"{queue.name!r} is a subscription of topic {owner[0][0]!r}")
    else:
        yield Statement(UPDATE_EXPR, (expr, now, queue.id))


@operation()
def unsubscribe(topic: str, name: str, expected: str) -> Steps[None]:
    """Remove a subscription and its empty backing queue, if it is still that of the
    `expected` generation; the topic goes with its last one.

    Raises InvalidArgument, NotFound, QueueChanged, QueueNotEmpty.
    """
    queue = yield from _backing_queue(topic, name)
    yield from queues.retire(queue, expected)
    yield Statement(DELETE_SUBSCRIPTION, (queue.id,))
    yield Changed(topic)


@operation(reads=True)
def generation(topic: str, name: str) -> Steps[str]:
    """The present incarnation of the subscription. Raises NotFound."""
    return (yield from _backing_queue(topic, name)).generation


def _backing_queue(topic: str, name: str) -> Steps[Queue]:
    check_present(topic, "topic")
    check_present(name, "name")
    queue = yield from resolve_queue(name)
    owner = (yield Statement(SELECT_BACKING_QUEUE, (topic, name))) if queue else []
    if queue is None or not owner or owner[0][0] != queue.id:
        raise NotFound(f"topic {topic!r} has no subscription {name!r}")
    return queue


@operation(reads=True)
def list_subscriptions() -> Steps[list[SubscriptionInfo]]:
    """All subscriptions, ascending by topic, then name."""
    rows = yield Statement(SELECT_SUBSCRIPTIONS)
    return [SubscriptionInfo(topic=row[0], name=row[1], expr=row[2]) for row in rows]

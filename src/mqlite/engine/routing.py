"""Which subscriptions of a topic receive a message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from mqlite.engine.catalog import Subscription, Topic
from mqlite.engine.filters import Uncompiled, failure_text, sample_of
from mqlite.engine.steps import Stage, Unrouted
from mqlite.model import OutMessage

if TYPE_CHECKING:
    from mqlite.expr import Budget

_QUICK_WORK: Final = 2_000
_QUICK_EVALUATIONS: Final = 512
_QUICK_BYTES: Final = 64 * 1024


class Routes(msgspec.Struct, frozen=True):
    """The subscriptions of `topic` that accept any of the messages, in order, each with the
    indexes of those; and what went wrong on the way.

    Worked out before admission, outside the writer, and used only while the topic is still
    the same.
    """

    topic: Topic
    accepted: tuple[tuple[Subscription, tuple[int, ...]], ...]
    failures: tuple[Unrouted, ...] = ()


def route(
    topic: Topic,
    messages: Sequence[OutMessage],
    enqueued_at: int,
    visible_at: int,
    budget: Budget | None = None,
) -> Routes:
    """Run the topic's filters. One that fails does not let the message through."""
    if budget is None:
        from mqlite.expr import Budget

        budget = Budget()
    subscriptions, filters = topic.subscriptions, topic.filters
    hits: dict[int, list[int]] = {}
    failed: dict[tuple[int, str, Stage], int] = {}
    for index, message in enumerate(messages):
        sample = sample_of(message, enqueued_at, visible_at)
        for position, matches in enumerate(filters):
            try:
                if matches(sample, budget):
                    hits.setdefault(position, []).append(index)
            except Exception as error:
                stage: Stage = "compile" if isinstance(error, Uncompiled) else "evaluate"
                failure = position, failure_text(error, subscriptions[position].expr), stage
                failed[failure] = failed.get(failure, 0) + 1
    accepted = [(subscriptions[position], tuple(hits[position])) for position in sorted(hits)]
    failures = [
        _unrouted(subscriptions[position], error, number, stage)
        for (position, error, stage), number in sorted(failed.items())
    ]
    return Routes(topic, tuple(accepted), tuple(failures))


def merged(parts: Sequence[Routes]) -> Routes:
    """The routes of single messages to one topic as those of all of them together."""
    hits: dict[str, tuple[Subscription, list[int]]] = {}
    for index, part in enumerate(parts):
        for subscription, _ in part.accepted:
            hits.setdefault(subscription.name, (subscription, []))[1].append(index)
    accepted = tuple((hit, tuple(indexes)) for _, (hit, indexes) in sorted(hits.items()))
    return Routes(parts[0].topic, accepted, tuple(f for part in parts for f in part.failures))


def _unrouted(subscription: Subscription, error: str, number: int, stage: Stage) -> Unrouted:
    name, expr = subscription.name, subscription.expr
    return Unrouted(subscription.queue_id, name, expr, error, number, stage)


def route_quickly(
    topic: Topic, messages: Sequence[OutMessage], enqueued_at: int, visible_at: int
) -> Routes | None:
    """`route` if it takes but a few milliseconds, else None."""
    if (
        len(messages) * len(topic.subscriptions) > _QUICK_EVALUATIONS
        or sum(len(message.body) for message in messages) > _QUICK_BYTES
    ):
        return None
    from mqlite.expr import Budget

    budget = Budget(_QUICK_WORK)
    routes = route(topic, messages, enqueued_at, visible_at, budget)
    return routes if budget.work >= 0 else None

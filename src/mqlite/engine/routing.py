"""Which subscriptions of a topic receive a message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from mqlite.engine.catalog import Subscription, Topic
from mqlite.engine.filters import failure_text, sample_of
from mqlite.engine.steps import Unrouted
from mqlite.expr import Budget
from mqlite.expr.message import Sample
from mqlite.model import OutMessage

_QUICK_WORK: Final = 2_000
_QUICK_EVALUATIONS: Final = 512
_QUICK_BYTES: Final = 64 * 1024


class Routes(msgspec.Struct, frozen=True):
    """For each subscription of `topic`, in order, the indexes of the messages it accepts, and
    what went wrong on the way.

    Worked out before admission, outside the writer, and used only while the topic is still
    the same.
    """

    topic: Topic
    accepted: tuple[tuple[int, ...], ...]
    failures: tuple[Unrouted, ...] = ()


def route(
    topic: Topic,
    messages: Sequence[OutMessage],
    enqueued_at: int,
    visible_at: int,
    budget: Budget | None = None,
) -> Routes:
    """Run the topic's filters. One that fails lets the message not through."""
    budget = budget or Budget()
    everything = tuple(range(len(messages)))
    samples: list[Sample] = []
    accepted: list[tuple[int, ...]] = []
    failed: dict[tuple[Subscription, str], int] = {}
    for subscription, found in zip(topic.subscriptions, topic.filters, strict=True):
        if found is None:
            accepted.append(everything)
            continue
        if not samples:
            samples = [sample_of(message, enqueued_at, visible_at) for message in messages]
        hits: list[int] = []
        for index, sample in enumerate(samples):
            try:
                if found.matches(sample, budget):
                    hits.append(index)
            except Exception as error:
                failure = subscription, failure_text(error, subscription.expr)
                failed[failure] = failed.get(failure, 0) + 1
        accepted.append(tuple(hits))
    failures = [
        Unrouted(subscription.queue_id, subscription.name, subscription.expr, error, number)
        for (subscription, error), number in failed.items()
    ]
    return Routes(topic, tuple(accepted), tuple(failures))


def route_quickly(
    topic: Topic, messages: Sequence[OutMessage], enqueued_at: int, visible_at: int
) -> Routes | None:
    """`route` if it takes but a few milliseconds, else None."""
    if (
        len(messages) * len(topic.subscriptions) > _QUICK_EVALUATIONS
        or sum(len(message.body) for message in messages) > _QUICK_BYTES
    ):
        return None
    budget = Budget(_QUICK_WORK)
    routes = route(topic, messages, enqueued_at, visible_at, budget)
    return routes if budget.work >= 0 else None

"""Which subscriptions of a topic receive a message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from mqlite.engine.catalog import Subscription, Topic
from mqlite.errors import InvalidArgument
from mqlite.model import OutMessage

FILTERS_UNAVAILABLE: Final = "filters are not available in this version"


class Routes(msgspec.Struct, frozen=True):
    """For each subscription of `topic`, in order, the indexes of the messages it accepts.

    Worked out before admission, outside the writer, and used only while the topic is still
    the same.
    """

    topic: Topic
    accepted: tuple[tuple[int, ...], ...]


def route(topic: Topic, messages: Sequence[OutMessage]) -> Routes:
    return Routes(
        topic,
        tuple(
            tuple(index for index, message in enumerate(messages) if accepts(subscription, message))
            for subscription in topic.subscriptions
        ),
    )


def accepts(subscription: Subscription, message: OutMessage) -> bool:
    """Whether the subscription's filter lets the message through; a blank one lets all."""
    return not subscription.expr.strip()


def check_expr(expr: str) -> None:
    """Raises InvalidArgument for a filter that cannot be used."""
    if expr.strip():
        raise InvalidArgument(FILTERS_UNAVAILABLE)

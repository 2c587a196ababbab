"""What the client makes of a broker's answers: the `finish` of its calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from mqlite import wire
from mqlite.client.call import Arrival
from mqlite.client.leases import deadline
from mqlite.errors import LockLost, MqliteError
from mqlite.messages import BaseMessage
from mqlite.model import (
    MessageData,
    MoveResult,
    QueueInfo,
    RenewResult,
    SettleResult,
    StoreStatus,
    SubscriptionInfo,
)
from mqlite.observation.decoding import decode
from mqlite.observation.schema import Observation

A = TypeVar("A")
Handle = TypeVar("Handle", bound=BaseMessage)
Settled = TypeVar("Settled", SettleResult, RenewResult)


class Received(NamedTuple):
    """Messages, and until when the lease of each surely lasts."""

    messages: list[MessageData]
    deadlines: list[float]


def handles(kind: Callable[..., Handle], queue: str, received: Received, mq: Any) -> list[Handle]:
    """Messages as what settles itself through `mq`."""
    astuple = msgspec.structs.astuple
    return [
        kind(*astuple(message), queue, deadline, mq)
        for message, deadline in zip(*received, strict=True)
    ]


def held(result: Settled, queue: str) -> Settled:
    if not result.ok:
        raise LockLost(f"message {result.seq_number} of {queue!r} is not locked under this token")
    return result


def nothing(answer: Any, _: Arrival) -> None:
    return None


def itself(answer: A, _: Arrival) -> A:
    return answer


def queues(answer: wire.ListQueuesResponse, _: Arrival) -> list[QueueInfo]:
    return [entry.info() for entry in answer.queues]


def subscriptions(answer: wire.ListSubscriptionsResponse, _: Arrival) -> list[SubscriptionInfo]:
    return answer.subscriptions


def moved(answer: wire.RedriveResponse, _: Arrival) -> MoveResult:
    return MoveResult(answer.moved, answer.complete)


def purged(answer: wire.PurgeResponse, _: Arrival) -> MoveResult:
    return MoveResult(answer.purged, answer.complete)


def status(answer: wire.StatusResponse, _: Arrival) -> StoreStatus:
    return answer.status()


def observation(answer: msgspec.Raw, _: Arrival) -> Observation:
    try:
        return decode(bytes(answer))
    except ValueError as problem:
        raise MqliteError(f"the broker answered with no observation: {problem}") from None


def messages(answer: wire.MessagesResponse, _: Arrival) -> list[MessageData]:
    return answer.messages


def received(answer: wire.ReceiveResponse, arrival: Arrival) -> Received:
    messages, waited_ms = answer.messages, answer.waited_ms
    return Received(messages, [deadline(message, arrival, waited_ms) for message in messages])


def unparked(answer: wire.MessagesResponse, arrival: Arrival) -> Received:
    messages = answer.messages
    return Received(messages, [deadline(message, arrival) for message in messages])


def one_each(answered: list[Settled], request: wire.BatchRequest) -> list[Settled]:
    """Raises MqliteError for an answer that leaves open which result is whose."""
    expected = len(request.messages or ())
    if len(answered) != expected:
        raise MqliteError(f"the broker answered {len(answered)} results for {expected} messages")
    return answered


def renewed(answer: wire.RenewBatchResponse, arrival: Arrival) -> list[RenewResult]:
    return [
        RenewResult(
            result.seq_number,
            result.ok,
            result.locked_until_ms,
            result.lease_ms,
            deadline(result, arrival),
        )
        for result in answer.results
    ]

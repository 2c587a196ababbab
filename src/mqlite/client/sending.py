"""Send and Schedule as calls: of one message, of a batch, and of many senders' messages at
once."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UNSET

from mqlite import wire
from mqlite.client.call import Arrival, Call, Safety, call_to
from mqlite.client.failures import refusal
from mqlite.errors import MqliteError
from mqlite.model import OutMessage


def send(queue: str, messages: Iterable[OutMessage], at: int, ttl_ms: int) -> Call[list[int]]:
    """A caller's own messages; answers a number for each. `at` is in epoch ms, 0 for now."""
    request = _request(queue, [wire.wire_message(message) for message in messages], at, ttl_ms)
    expected = len(request.messages or ())

    def finish(answer: wire.SendResponse, _: Arrival) -> list[int]:
        return _numbers(answer, expected)

    return call_to(_operation(at), request, wire.SendResponse, finish, Safety.ONCE)


def send_together(
    queue: str, messages: list[wire.WireMessage], at: int, ttl_ms: int, *, results: bool
) -> Call[list[int | MqliteError]]:
    """Messages of several senders; answers a number or an error for each. Without `results`,
    for which an older broker must not be asked, there are only numbers."""
    request = _request(queue, messages, at, ttl_ms)
    if results:
        request.results = True
    expected = len(messages)

    def finish(answer: wire.SendResponse, _: Arrival) -> list[int | MqliteError]:
        numbers = _numbers(answer, expected)
        if answer.results is UNSET or len(answer.results) != expected:
            return list(numbers)
        return [
            refusal(slot.code, slot.message) if slot.code else number
            for slot, number in zip(answer.results, numbers, strict=True)
        ]

    return call_to(_operation(at), request, wire.SendResponse, finish, Safety.ONCE)


def _operation(at: int) -> str:
    return "QueueService/Schedule" if at else "QueueService/Send"


def _request(
    queue: str, messages: list[wire.WireMessage], at: int, ttl_ms: int
) -> wire.SendRequest:
    return wire.SendRequest(
        queue=queue,
        messages=messages,
        scheduled_enqueue_time_ms=at or None,
        ttl_ms=ttl_ms or None,
    )


def _numbers(answer: wire.SendResponse, expected: int) -> list[int]:
    numbers = answer.seq_numbers or []
    if len(numbers) != expected:
        raise MqliteError(f"the broker answered {len(numbers)} numbers for {expected} messages")
    return numbers

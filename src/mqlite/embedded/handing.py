"""What callers are handed: messages that settle themselves, and leases with their deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from mqlite.clock import Clock
from mqlite.messages import BaseMessage
from mqlite.model import MessageData, RenewResult

M = TypeVar("M", bound=BaseMessage)


def messages(
    kind: Callable[..., M], claimed: Iterable[MessageData], queue: str, mq: Any, clock: Clock
) -> list[M]:
    """Claimed messages as handles of this kind, with the ends of their leases on the clock that
    does not jump."""
    astuple = msgspec.structs.astuple
    ahead = _ahead(clock)
    made: list[M] = []
    for message in claimed:
        until = message.locked_until_ms
        made.append(kind(*(*astuple(message), queue, (until - ahead) / 1000 if until else 0.0, mq)))
    return made


def renewal(result: RenewResult, clock: Clock) -> RenewResult:
    """A renewal with its deadline on the handle's clock."""
    if not result.locked_until_ms:
        return result
    deadline = (result.locked_until_ms - _ahead(clock)) / 1000
    return msgspec.structs.replace(result, lease_deadline=deadline)


def _ahead(clock: Clock) -> int:
    """By how much `now` is ahead of `elapsed`."""
    return clock.now() - clock.elapsed()

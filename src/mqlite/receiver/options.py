"""How a receiver works, checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypedDict

import msgspec

from mqlite import arguments
from mqlite.durations import Duration, to_ms
from mqlite.errors import InvalidArgument
from mqlite.messages import BaseMessage
from mqlite.model import MAX_BATCH
from mqlite.receiver.reports import OnError

MAX_CONCURRENCY: Final = 1000
DEFAULT_WAIT: Final = 20
DEFAULT_DRAIN: Final = 30

RetryDelay = Duration | Callable[[BaseMessage], Duration]


class ReceiverOptions(TypedDict, total=False):
    """What `receiver` and `worker` take; see `MQ.receiver`."""

    type: Any
    concurrency: int
    prefetch: int | None
    auto_renew: bool
    retry_delay: RetryDelay
    wait: Duration
    drain_timeout: Duration
    on_error: OnError | None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """`ReceiverOptions` in the units of the machinery."""

    queue: str
    type: Any
    concurrency: int
    prefetch: int
    auto_renew: bool
    retry_delay: RetryDelay
    wait_ms: int
    drain_ms: int
    on_error: OnError | None


def read_options(queue: str, options: ReceiverOptions) -> Settings:
    """Raises InvalidArgument, naming the option and what it accepts."""
    if unknown := options.keys() - ReceiverOptions.__annotations__.keys():
        known = ", ".join(ReceiverOptions.__annotations__)
        raise InvalidArgument(f"unknown option {min(unknown)!r}; known are {known}")
    concurrency = arguments.integer(
        options.get("concurrency", 1), "concurrency", 1, MAX_CONCURRENCY
    )
    prefetch = options.get("prefetch")
    if prefetch is not None:
        arguments.integer(prefetch, "prefetch", 1, MAX_BATCH)
    retry_delay = options.get("retry_delay", 0)
    if not callable(retry_delay):
        to_ms(retry_delay, "retry_delay")
    auto_renew = options.get("auto_renew", True)
    if not isinstance(auto_renew, bool):
        raise InvalidArgument(f"auto_renew must be True or False, got {auto_renew!r}")
    on_error = options.get("on_error")
    if on_error is not None and not callable(on_error):
        raise InvalidArgument(f"on_error must be callable, got {on_error!r}")
    return Settings(
        queue=arguments.text(queue, "queue"),
        type=options.get("type"),
        concurrency=concurrency,
        prefetch=min(prefetch or MAX_BATCH, concurrency, MAX_BATCH),
        auto_renew=auto_renew,
        retry_delay=retry_delay,
        wait_ms=arguments.wait_ms(options.get("wait", DEFAULT_WAIT)),
        drain_ms=to_ms(options.get("drain_timeout", DEFAULT_DRAIN), "drain_timeout"),
        on_error=on_error,
    )

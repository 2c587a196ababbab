"""How a receiver works, checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypedDict, TypeVar

import msgspec

from mqlite import arguments
from mqlite.api import T
from mqlite.durations import Duration, to_ms
from mqlite.errors import InvalidArgument
from mqlite.messages import BaseMessage
from mqlite.model import MAX_BATCH
from mqlite.receiver.reports import OnError

MAX_CONCURRENCY: Final = 1000
DEFAULT_WAIT: Final = 20
DEFAULT_DRAIN: Final = 30

P = ParamSpec("P")
R = TypeVar("R")

RetryDelay = Duration | Callable[[BaseMessage], Duration]


class RunOptions(TypedDict, total=False):
    """How handlers are run; see `MQ.receiver`."""

    concurrency: int
    prefetch: int | None
    auto_renew: bool
    retry_delay: RetryDelay
    wait: Duration
    drain_timeout: Duration
    on_error: OnError | None


class ReceiverOptions(RunOptions, total=False):
    """What `receiver` and `worker` take; see `MQ.receiver`."""

    type: Any


class Declare(Protocol[T]):
    """The decorator of a handler that is given values of one type first."""

    def __call__(
        self, handler: Callable[Concatenate[T, P], R], /
    ) -> Callable[Concatenate[T, P], R]: ...


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
    arguments.check_known(options, ReceiverOptions, "option")
    concurrency = arguments.integer(
        options.get("concurrency", 1), "concurrency", 1, MAX_CONCURRENCY
    )
    prefetch = options.get("prefetch")
    if prefetch is not None:
        arguments.integer(prefetch, "prefetch", 1, MAX_BATCH)
    retry_delay = options.get("retry_delay", 0)
    if not callable(retry_delay):
        to_ms(retry_delay, "retry_delay")
    on_error = options.get("on_error")
    if on_error is not None and not callable(on_error):
        raise InvalidArgument(f"on_error must be callable, got {on_error!r}")
    return Settings(
        queue=arguments.text(queue, "queue"),
        type=options.get("type"),
        concurrency=concurrency,
        prefetch=min(prefetch or MAX_BATCH, concurrency, MAX_BATCH),
        auto_renew=arguments.flag(options.get("auto_renew", True), "auto_renew"),
        retry_delay=retry_delay,
        wait_ms=arguments.wait_ms(options.get("wait", DEFAULT_WAIT)),
        drain_ms=to_ms(options.get("drain_timeout", DEFAULT_DRAIN), "drain_timeout"),
        on_error=on_error,
    )

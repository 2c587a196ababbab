"""How a queue is put on the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from mqlite.broker.limits import Limits, Timeouts


class Options(TypedDict, total=False):
    """Options of `asgi`, `serve` and `serving`; `mqlite.broker.serve` describes them."""

    monitor_tokens: Sequence[str]
    cors: str | None
    limits: Limits | None
    metrics: bool


class ServeOptions(Options, total=False):
    """Options of `serve` and `serving`."""

    insecure_allow_remote: bool
    timeouts: Timeouts | None

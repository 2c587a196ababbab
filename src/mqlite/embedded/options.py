"""How a queue in this process is opened."""

from __future__ import annotations

import logging
from typing import TypedDict

from mqlite.clock import Clock
from mqlite.durations import Duration


class Options(TypedDict, total=False):
    """Options of `mqlite.open` and `mqlite.open_async`, where they are described."""

    synchronous: str
    max_message_bytes: int
    dlq_max_age: Duration | None
    dlq_max_count: int | None
    dlq_max_bytes: int | None
    clock: Clock | None
    logger: logging.Logger

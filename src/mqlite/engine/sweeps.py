"""The maintenance passes, in the documented order.

Deadline-driven passes run when the earliest known work falls due; the periods are the
safety net (source: mqlite). Each works in bounded chunks, so that a backlog never stalls
the writer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from mqlite.engine import expiry, janitor, leases, retention, schedule
from mqlite.engine.retention import Bounds
from mqlite.engine.steps import (
    EXPIRY_DUE,
    LOCK_DUE,
    SCHEDULE_DUE,
    Operation,
    Pass,
    Plan,
)

SECOND_MS: Final = 1000


def passes(bounds: Bounds) -> Sequence[Pass]:
    """All passes of the engine; `bounds` are those that queues inherit for dead letters."""
    return (
        Pass("locks", SECOND_MS, lambda: _exhaust(leases.expire, leases.CHUNK), LOCK_DUE),
        Pass(
            "scheduled",
            SECOND_MS,
            lambda: _exhaust(schedule.activate, schedule.CHUNK),
            SCHEDULE_DUE,
        ),
        Pass("ttl", 10 * SECOND_MS, lambda: _exhaust(expiry.expire, expiry.CHUNK), EXPIRY_DUE),
        Pass("dedup", 60 * SECOND_MS, lambda: _exhaust(janitor.forget_duplicates, janitor.CHUNK)),
        Pass("receipts", 10 * SECOND_MS, lambda: _exhaust(janitor.forget_requests, janitor.CHUNK)),
        Pass("retention", 60 * SECOND_MS, lambda: retention.retain(bounds)),
        Pass("finished", 60 * SECOND_MS, lambda: _exhaust(janitor.forget_finished, janitor.CHUNK)),
        Pass("deleted", 60 * SECOND_MS, lambda: _exhaust(janitor.clear_deleted_queue, 1)),
        Pass("payloads", 3600 * SECOND_MS, _drop_orphans),
    )


def recover() -> Plan[None]:
    """What an owner does first: reclaim the locks of the previous one."""
    return _exhaust(leases.recover, leases.CHUNK)


def _exhaust(chunk: Callable[[], Operation[int]], size: int) -> Plan[None]:
    """Run a chunk after the other until one finds less than `size`."""
    while (yield chunk()) >= size:
        pass


def _drop_orphans() -> Plan[None]:
    after = 0
    while after := (yield janitor.drop_orphaned_payloads(after)):
        pass

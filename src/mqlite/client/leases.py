"""When a lease surely ends, by the client's own clock.

The broker's wall clock may be hours away from ours, so what counts is how much of the lease
was left when the answer was made (`lease_ms`), counted from before the request was sent. A
long poll says how long it was waiting (`waited_ms`), which is counted too: the lease began
after that.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import Final

from mqlite.client.call import Arrival
from mqlite.model import MessageData, RenewResult

_DATE_PRECISION_MS: Final = 1000


def deadline(lease: MessageData | RenewResult, arrival: Arrival, waited_ms: int = 0) -> float:
    """In seconds of `Clock.elapsed`; 0 where there is no lease, or nothing tells its end."""
    if not lease.locked_until_ms:
        return 0.0
    left = lease.lease_ms or _left_by_date(lease.locked_until_ms, arrival.date)
    if left is None:
        return 0.0
    return (arrival.sent + waited_ms + left) / 1000


def _left_by_date(locked_until_ms: int, date: str) -> int | None:
    """What is left of the lease of a broker that does not say so: by its own clock, as the
    answer's `Date` has it, which may be behind by up to a second."""
    try:
        now = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return None
    return max(locked_until_ms - int(now.timestamp() * 1000) - _DATE_PRECISION_MS, 0)

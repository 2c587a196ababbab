"""How much may be pending at once, so that memory stays bounded under any load."""

from __future__ import annotations

from typing import Final, NamedTuple

from mqlite.broker.limits import Limits
from mqlite.errors import Unavailable

_RESERVE: Final = 8  # one part in this many is kept for settlements
_RETRY_AFTER_SECONDS: Final = 1


class Share(NamedTuple):
    """The part of the budget a kind of request may fill."""

    requests: int
    bytes: int


class Budget:
    """Counts what is pending. Belongs to one event loop.

    Sends and receives leave a reserve, so that under overload what is held can still be
    settled, which is what ends the overload.
    """

    __slots__ = ("_common", "_whole", "answers", "bytes", "requests")

    def __init__(self, limits: Limits) -> None:
        self.requests = 0
        self.bytes = 0
        self.answers = 0
        """Bytes of large answers that their clients have not taken yet."""
        self._whole = Share(limits.requests, limits.pending_bytes)
        self._common = Share(
            limits.requests - limits.requests // _RESERVE,
            limits.pending_bytes - limits.pending_bytes // _RESERVE,
        )

    def enter(self, *, settles: bool, reads: bool) -> Share:
        """Count one more request in; one that `reads` messages may get a large answer. Raises
        Unavailable when there is no room."""
        share = self._whole if settles else self._common
        if reads and self.answers >= share.bytes:
            raise overloaded("too many answers wait for their clients to take them")
        if self.requests >= share.requests:
            raise overloaded("too many requests are pending")
        self.requests += 1
        return share

    def leave(self, held: int) -> None:
        self.requests -= 1
        self.bytes -= held

    def hold(self, size: int, share: Share) -> None:
        """Count `size` more bytes. Raises Unavailable when there is no room."""
        if self.bytes + size > share.bytes:
            raise overloaded("too many bytes of requests are pending")
        self.bytes += size


def overloaded(message: str) -> Unavailable:
    return Unavailable(message, reason="overloaded", retry_after=_RETRY_AFTER_SECONDS)

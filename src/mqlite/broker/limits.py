"""What a broker bears: how much at once, and how long."""

from __future__ import annotations

import msgspec

from mqlite import wire


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What is admitted at once. Sizes in bytes.

    `pending_bytes` weighs requests as they arrive, and by itself large answers until they are
    taken; what is made of a request while it is worked on takes up to twice as much again.
    """

    requests: int = 4096
    polls: int = 16_384
    pending_bytes: int = 128 * 1024 * 1024
    request_bytes: int = wire.MAX_REQUEST_BYTES


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """In seconds: to send a header, to send a whole request, to stay idle between requests,
    to take none of an answer, and for what is left to finish when the server stops."""

    header: float = 10
    request: float = 60
    idle: float = 120
    stall: float = 60
    grace: float = 25

    @property
    def sweep(self) -> float:
        """How often connections are looked at: a timer for each would cost every request."""
        return max(min(self.header, self.request, self.idle, self.stall, 10) / 10, 0.01)

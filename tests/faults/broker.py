"""A broker process, to be killed: `broker.py DATABASE ADDRESS TOKEN SHIFT_MS`.

Its wall clock is off by so many milliseconds. It says its URL when it is ready.
"""

from __future__ import annotations

import sys
import time

import mqlite
from mqlite.clock import SystemClock


def main(database: str, address: str, token: str, shift_ms: int) -> None:
    SystemClock.now = lambda self: time.time_ns() // 1_000_000 + shift_ms  # type: ignore[method-assign]
    with mqlite.open(database) as mq:
        mq.serve(address, tokens=[token], ready=lambda url: print(url, flush=True))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))

"""A broker process, to be killed: `broker.py DATABASE ADDRESS SHIFT_MS`, with its tokens in
MQLITE_TOKENS.

Its wall clock is off by so many milliseconds. It says its URL when it is ready.
"""

from __future__ import annotations

import os
import sys
import time

import mqlite
from mqlite.clock import SystemClock


def main(database: str, address: str, shift_ms: int) -> None:
    SystemClock.now = lambda self: time.time_ns() // 1_000_000 + shift_ms  # type: ignore[method-assign]
    with mqlite.open(database) as mq:
        tokens = os.environ["MQLITE_TOKENS"].split(",")
        mq.serve(address, tokens=tokens, ready=lambda url: print(url, flush=True))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

"""A process that owns the queue and consumes: `owner.py PATH`.

What it consumes it writes down in the transaction that completes the message.
"""

from __future__ import annotations

import sys

import mqlite


def main(path: str) -> None:
    with mqlite.open(path) as mq:
        while True:
            for message in mq.receive("orders", max_messages=8, wait="5s"):
                with mq.transaction() as tx:
                    tx.execute("INSERT INTO consumed VALUES (?)", (int(message.body),))
                    tx.complete("orders", message.seq_number, message.lock_token)
                    tx.send("echo", message.body)


if __name__ == "__main__":
    main(*sys.argv[1:])

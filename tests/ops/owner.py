"""The process that owns the queue of the drill, as busy as it can be until it is killed.

It says a fact in JSON on a line of standard output, each only after the call that made it true has
returned.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
from typing import Any

import mqlite

SENDERS = 3


def say(*fact: Any) -> None:
    os.write(1, (json.dumps(fact) + "\n").encode())


def prepare(mq: mqlite.Embedded) -> None:
    """Something in every state, and what else a restore has to bring back."""
    mq.create_queue("states", lock_duration="1h", max_delivery_count=2)
    mq.create_queue("kept", lock_duration="1h", keep_leases=True)
    mq.create_queue("load")
    mq.subscribe("events", "eu", expr='subject == "eu"')
    mq.send("states", "scheduled", at="1d")
    for name in ("deferred", "dead", "at-the-limit", "locked"):
        mq.send("states", name)
        [message] = mq.receive("states")
        if name == "deferred":
            message.defer()
        if name == "dead":
            message.reject("bad", "as the drill wants it")
        if name == "at-the-limit":
            message.abandon()
            [message] = mq.receive("states")
        say("state", name, message.seq_number, message.lock_token)
    mq.send("kept", "kept")
    [message] = mq.receive("kept")
    say("state", "kept", message.seq_number, message.lock_token)
    say("key", mq.create_key(mqlite.generate_key_id(), name="k", permissions=["send"]).key.id)
    with mq.transaction() as tx:
        tx.execute("CREATE TABLE orders (id TEXT PRIMARY KEY)")


def send(mq: mqlite.Embedded, number: int) -> None:
    for i in itertools.count():
        body = f"{number} {i} " + "x" * 500
        say("sent", number, i, mq.send("load", body))


def order(mq: mqlite.Embedded) -> None:
    """The outbox: a row of the application's and its message in one transaction."""
    for i in itertools.count():
        with mq.transaction() as tx:
            tx.execute("INSERT INTO orders VALUES (?)", (f"order {i}",))
            tx.send("events", f"order {i}", subject="eu")
        say("ordered", i)


def main(path: str) -> None:
    mq = mqlite.open(path)
    prepare(mq)
    threads = [threading.Thread(target=send, args=(mq, number)) for number in range(SENDERS)]
    for thread in [*threads, threading.Thread(target=order, args=(mq,))]:
        thread.start()


if __name__ == "__main__":
    main(sys.argv[1])

"""What is killed: a process of its own that works on a queue and says what has become durable.

Each line on its standard output is a fact in JSON, written only after the call that made it true
has returned. Started as `child.py SCENARIO DATABASE [HOLD]`. `HOLD` names the point at which
the process says so and stops for good, to be killed exactly there; without it the process works
until it is killed.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sqlite3
import sys
import threading
from collections.abc import Callable
from typing import Any

import mqlite

HOLD = sys.argv[3] if len(sys.argv) > 3 else ""
THREADS = 6
HOUR = "1h"


def say(*fact: Any) -> None:
    os.write(1, (json.dumps(fact) + "\n").encode())


def hold(point: str) -> None:
    """The chosen point of death, if this is it."""
    if point == HOLD:
        say("at", point)
        threading.Event().wait()


def hold_at_statement(mq: mqlite.Embedded, text: str, number: int) -> None:
    """Stop when the writer is about to run a statement for the given time."""
    left = itertools.count(number, -1)

    def look(statement: str) -> None:
        if statement.startswith(text) and next(left) == 0:
            hold(text)

    if text == HOLD:
        mq.core.store._connection.set_trace_callback(look)


def in_threads(work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def send_from_threads(path: str) -> None:
    mq = mqlite.open(path)
    for text in ("BEGIN", "COMMIT"):
        hold_at_statement(mq, text, 200)

    def work(number: int) -> None:
        for i in itertools.count():
            seq = mq.send("q", f"{os.getpid()} {number} {i}")
            say("sent", seq, f"{os.getpid()} {number} {i}")

    in_threads(work)


def send_from_tasks(path: str) -> None:
    async def work(mq: mqlite.AsyncEmbedded, number: int) -> None:
        for i in itertools.count():
            bodies = [f"{os.getpid()} {number} {i} {j}" for j in range(3)]
            seqs = await mq.send_batch("q", bodies)
            for seq, body in zip(seqs, bodies, strict=True):
                say("sent", seq, body)

    async def main() -> None:
        mq = await mqlite.open_async(path)
        await asyncio.gather(*(work(mq, number) for number in range(40)))

    asyncio.run(main())


def take_orders(path: str) -> None:
    """The outbox in the owner: an order and its message in one transaction."""
    mq = mqlite.open(path)
    for i in itertools.count():
        with mq.transaction() as tx:
            tx.execute("INSERT INTO orders (id) VALUES (?)", (f"{os.getpid()} {i}",))
            if i == 5:
                hold("between the writes")
            tx.send("q", f"{os.getpid()} {i}")
            if i == 5:
                hold("before the commit")
        say("ordered", f"{os.getpid()} {i}")


def take_orders_elsewhere(path: str) -> None:
    """The outbox in a process that does not own the queue."""
    connection = sqlite3.connect(path, isolation_level=None)
    mqlite.configure(connection)
    for i in itertools.count():
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO orders (id) VALUES (?)", (f"{os.getpid()} {i}",))
        if i == 5:
            hold("between the writes")
        mqlite.outbox(connection).send("q", f"{os.getpid()} {i}")
        if i == 5:
            hold("before the commit")
        connection.execute("COMMIT")
        say("ordered", f"{os.getpid()} {i}")


def take_orders_joined(path: str) -> None:
    """The outbox on a connection of the caller's, in the process that owns the queue."""
    mq = mqlite.open(path)
    connection = sqlite3.connect(path)
    mqlite.configure(connection)
    for i in itertools.count():
        with connection:
            connection.execute("INSERT INTO orders (id) VALUES (?)", (f"{os.getpid()} {i}",))
            if i == 5:
                hold("between the writes")
            mq.join(connection).send("q", f"{os.getpid()} {i}")
            if i == 5:
                hold("before the commit")
        say("ordered", f"{os.getpid()} {i}")


def hold_locks(path: str) -> None:
    """Claim until nothing is left, and keep it all."""
    mq = mqlite.open(path)
    while claimed := mq.receive("q", max_messages=16):
        say("claimed", [message.seq_number for message in claimed])
    hold("with all locks")


def settle_in_threads(path: str) -> None:
    """Receive and settle in every way."""
    mq = mqlite.open(path)
    hold_at_statement(mq, "COMMIT", 150)

    def work(number: int) -> None:
        for i in itertools.count(number):
            for message in mq.receive("q", wait=20, max_messages=1 + i % 3):
                say("claimed", message.seq_number, message.delivery_count)
                if i % 4 == 0:
                    message.abandon()
                    say("abandoned", message.seq_number)
                elif i % 11 == 0:
                    message.reject("bad")
                    say("rejected", message.seq_number)
                else:
                    message.complete()
                    say("completed", message.seq_number)

    in_threads(work)


def consume(path: str) -> None:
    """The owner beside other processes that send: complete each message, and say so first."""
    mq = mqlite.open(path)
    say("ready")
    while True:
        for message in mq.receive("q", wait=20, max_messages=8):
            say("received", message.text)
            message.complete()


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])

"""The queue in a program beside a bare `sqlite3` loop of the same statements and commits.

The bare loop runs on a file of the same schema with the same settings, checkpoints at the
same size of the log, and is compared with the queue's own trace before anything is measured.
"""

from __future__ import annotations

import argparse
import re
import secrets
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import mqlite
from bench.harness import Result, print_table, queue_on_disk, ratio_of_rates
from mqlite.clock import SystemClock
from mqlite.engine.receipts import INSERT_RECEIPT
from mqlite.engine.receive import CLAIM_ONE
from mqlite.engine.send import INTO_MESSAGES, OUTSIDE_LINES
from mqlite.engine.settle import COMPLETE
from mqlite.stores.sqlite.connection import LOG_LIMIT_BYTES
from mqlite.stores.sqlite.housekeeping import CHECKPOINT_BYTES

BODY = b"x" * 256
INSERT_ONE = INTO_MESSAGES + OUTSIDE_LINES
INSERT_64 = INTO_MESSAGES + ", ".join([OUTSIDE_LINES] * 64)
NOW = 1_700_000_000_000
LATER = NOW * 2
ROW = (1, "active", 0, 0, NOW, NOW, 0, 0, None, *[""] * 5, len(BODY), None, "", BODY)


class Bare:
    """What a program would write by hand: no queue, the same statements."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        page_size = self.connection.execute("PRAGMA page_size").fetchone()[0]
        for setting in (
            "synchronous = NORMAL",
            "temp_store = MEMORY",
            "foreign_keys = ON",
            f"journal_size_limit = {LOG_LIMIT_BYTES}",
            f"wal_autocheckpoint = {CHECKPOINT_BYTES // page_size}",
        ):
            self.connection.execute(f"PRAGMA {setting}").fetchall()
        self._cursor = self.connection.cursor()

    def send(self, times: int) -> None:
        execute = self._cursor.execute
        for _ in range(times):
            execute("BEGIN IMMEDIATE")
            execute(INSERT_ONE, ROW)
            execute("COMMIT")

    def receive_and_complete(self, times: int) -> None:
        execute, fetchall = self._cursor.execute, self._cursor.fetchall
        for _ in range(times):
            execute("BEGIN IMMEDIATE")
            execute(CLAIM_ONE, (LATER, secrets.token_hex(16), 1, NOW))
            row = fetchall()[0]
            execute("COMMIT")
            execute("BEGIN IMMEDIATE")
            execute(COMPLETE, (row[0], 1, row[6], NOW))
            assert len(fetchall()) == 1
            execute(INSERT_RECEIPT, (row[0], secrets.token_bytes(16), LATER))
            execute("COMMIT")

    def send_batch(self, times: int) -> None:
        for _ in range(times):
            self._cursor.execute("BEGIN IMMEDIATE")
            self._cursor.execute(INSERT_64, ROW * 64)
            self._cursor.execute("COMMIT")


class Queue:
    def __init__(self, mq: mqlite.Embedded) -> None:
        self._mq = mq

    def send(self, times: int) -> None:
        for _ in range(times):
            self._mq.send("q", BODY)

    def receive_and_complete(self, times: int) -> None:
        for _ in range(times):
            (message,) = self._mq.receive("q")
            message.complete()

    def send_batch(self, times: int) -> None:
        batch = [BODY] * 64
        for _ in range(times):
            self._mq.send_batch("q", batch)


@contextmanager
def bare_on_disk() -> Iterator[Bare]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mq.db"
        with mqlite.open(str(path)) as mq:
            mq.create_queue("q")
        yield Bare(path)


@contextmanager
def busy_thread() -> Iterator[None]:
    """Python code that never waits, beside the measured one."""
    stop = False

    def spin() -> None:
        while not stop:
            pass

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        yield
    finally:
        stop = True
        thread.join()


def statements(connection: sqlite3.Connection, work: Callable[[int], None]) -> list[str]:
    """What `work` executes, without the values."""
    traced: list[str] = []
    connection.set_trace_callback(traced.append)
    work(1)
    connection.set_trace_callback(None)
    literals = r"x?'[^']*'|\bNULL\b|-?\b\d+\b"
    return [re.sub(r"\s+", " ", re.sub(literals, "?", sql)).strip() for sql in traced]


def check_fair() -> None:
    """Both ways execute the same statements, in the same transactions. (With a clock of its
    own the queue does nothing in the background.)"""
    with bare_on_disk() as bare, queue_on_disk(SystemClock()) as (mq, _):
        queue = Queue(mq)
        mq.maintain()
        bare.send(2), queue.send(2)
        for name in ("send", "receive_and_complete", "send_batch"):
            ours = statements(mq.core.store._connection, getattr(queue, name))
            theirs = statements(bare.connection, getattr(bare, name))
            assert ours == theirs, f"{name} executes other statements than the bare loop"


def measure(scale: float = 1.0, label: str = "") -> list[Result]:
    check_fair()
    with bare_on_disk() as bare, queue_on_disk() as (mq, _):
        queue = Queue(mq)
        sends = max(int(1500 * scale), 20)
        bare.send(sends), queue.send(sends)
        return [
            ratio_of_rates(f"send{label}", bare.send, queue.send, times=sends, least=0.6),
            ratio_of_rates(
                f"receive and complete{label}",
                bare.receive_and_complete,
                queue.receive_and_complete,
                times=max(int(1000 * scale), 20),
                least=0.6,
            ),
            ratio_of_rates(
                f"send_batch of 64{label}",
                bare.send_batch,
                queue.send_batch,
                times=max(int(50 * scale), 5),
                least=0.5,
            ),
        ]


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    results = measure()
    with busy_thread():
        beside = measure(0.01, ", beside a CPU-bound thread")
    print_table([*results, *beside])


if __name__ == "__main__":
    main()

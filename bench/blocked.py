"""What a claim costs behind a blocked backlog, and what is written for large bodies."""

from __future__ import annotations

import argparse
import statistics
import time

import mqlite
from bench.harness import Result, print_table, queue_on_disk
from mqlite.clock import ManualClock

BACKLOG = 100_000
PATIENT = {"lock_duration": "1h", "max_delivery_count": 1_000_000}


def claim_seconds(mq: mqlite.Embedded, rounds: int = 300) -> float:
    """The median of receiving a message and giving it back."""
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        (message,) = mq.receive("q")
        taken.append(time.perf_counter() - started)
        message.abandon()
    return statistics.median(taken)


def fill(mq: mqlite.Embedded, group_id: str) -> None:
    batch = [mqlite.OutMessage(body=b"x" * 64, group_id=group_id)] * 1000
    for _ in range(BACKLOG // len(batch)):
        mq.send_batch("q", batch)


def behind_a_group() -> Result:
    with queue_on_disk(**PATIENT) as (empty, _), queue_on_disk(**PATIENT) as (full, _):
        fill(full, "blocked")
        full.receive("q")
        for mq in (empty, full):
            mq.send("q", b"free")
        return compared("claim behind a locked group head", empty, full)


def behind_a_strict_head() -> Result:
    with (
        queue_on_disk(**PATIENT) as (empty, _),
        queue_on_disk(ordering_mode="strict_fifo", **PATIENT) as (full, _),
    ):
        fill(full, "")
        empty.send("q", b"free")
        return compared("claim of a strict queue's head", empty, full)


def compared(name: str, empty: mqlite.Embedded, full: mqlite.Embedded) -> Result:
    pairs = [(claim_seconds(empty), claim_seconds(full)) for _ in range(5)]
    ratio = statistics.median(p[1] for p in pairs) / statistics.median(p[0] for p in pairs)
    return Result(
        f"{name}, {BACKLOG:,} messages",
        f"{ratio:.2f} of an empty queue",
        "at most 1.5",
        ratio <= 1.5,
    )


def fan_out_bytes() -> Result:
    body = b"x" * 64 * 1024
    with queue_on_disk(ManualClock()) as (mq, _):
        for number in range(10):
            mq.subscribe("topic", f"s{number}")
        before = mq.status().wal_size_bytes
        mq.send("topic", body)
        written = mq.status().wal_size_bytes - before
        ratio = written / len(body)
        return Result(
            "log written by a 64 KiB body to 10 subscriptions",
            f"{written:,} bytes, {ratio:.1f} bodies",
            "under 2 bodies",
            ratio < 2,
        )


def claim_bytes() -> Result:
    with queue_on_disk(ManualClock()) as (mq, _):
        mq.send("q", b"x" * 1024 * 1024)
        before = mq.status().wal_size_bytes
        mq.receive("q")
        written = mq.status().wal_size_bytes - before
        return Result(
            "log written by the claim of a 1 MiB body",
            f"{written:,} bytes",
            "under 65,536 bytes",
            written < 65_536,
        )


def drain_bytes() -> Result:
    count = 10_000
    with queue_on_disk(ManualClock()) as (mq, _):
        for _ in range(count // 100):
            mq.send_batch("q", [b"x" * 256] * 100)
        before = mq.status().wal_size_bytes
        while messages := mq.receive("q", max_messages=100):
            mq.complete_batch("q", messages)
        written = (mq.status().wal_size_bytes - before) / count
        return Result(
            "log written by a drain in batches of 100, receipts on",
            f"{written:,.0f} bytes a message",
            "reported",
            True,
        )


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    print_table(
        [behind_a_group(), behind_a_strict_head(), fan_out_bytes(), claim_bytes(), drain_bytes()]
    )


if __name__ == "__main__":
    main()

"""What a broker process costs: memory at rest and after a drain, and how fast a long poll wakes.

python -m bench.broker_process
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from bench.harness import Result, print_table
from mqlite.client import Client

MESSAGES = 100_000
MIB = 1024 * 1024


@contextmanager
def broker() -> Iterator[tuple[str, psutil.Process]]:
    """`mqlite serve` on a file of its own; yields the URL and the process."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "MQLITE_DB": f"file:{Path(folder) / 'mq.db'}",
            "MQLITE_TOKENS": "off",
        }
        address = "127.0.0.1:16754"
        command = [sys.executable, "-m", "mqlite", "serve", "--addr", address]
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if b"ready" in line:
                    break
            else:
                raise RuntimeError("the broker did not start")
            drain = threading.Thread(target=process.stderr.read, daemon=True)
            drain.start()
            yield f"http://{address}", psutil.Process(process.pid)
            process.terminate()


def memory(client: Client, process: psutil.Process) -> list[Result]:
    client.create_queue("drain")
    at_rest = process.memory_info().rss / MIB
    for _ in range(MESSAGES // 200):
        client.send_batch("drain", [b"x" * 256] * 200)
    drained = 0
    while messages := client.receive("drain", max_messages=256):
        client.complete_batch("drain", messages)
        drained += len(messages)
    assert drained == MESSAGES
    after = process.memory_info().rss / MIB
    return [
        Result("broker at rest", f"{at_rest:.0f} MiB", "under 60 MB", at_rest * MIB < 60e6),
        Result(
            f"after {MESSAGES:,} messages in and out",
            f"{after:.0f} MiB",
            "under 100 MB",
            after * MIB < 100e6,
        ),
    ]


def wake_up(url: str, rounds: int = 200) -> Result:
    """From just before a send to the receipt of its message by a waiting long poll."""
    sender = Client(url)
    sender.create_queue("wake")
    received: list[float] = []

    def receive() -> None:
        with Client(url) as receiver:
            for _ in range(rounds):
                [message] = receiver.receive("wake", wait=20)
                received.append(time.perf_counter())
                message.complete()

    thread = threading.Thread(target=receive)
    thread.start()
    took = []
    for round_ in range(rounds):
        time.sleep(0.02)  # the poll must be waiting
        started = time.perf_counter()
        sender.send("wake", b"x")
        while len(received) <= round_:
            time.sleep(0.0005)
        took.append(received[round_] - started)
    thread.join()
    sender.close()
    median = statistics.median(took) * 1000
    return Result(
        "long poll, from send to receipt", f"median {median:.1f} ms", "under 5 ms", median < 5
    )


def measure() -> list[Result]:
    with broker() as (url, process), Client(url) as client:
        return [*memory(client, process), wake_up(url)]


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    print_table(measure())

"""The hands-off receiver, with a handler that does nothing, beside a loop written by hand.

python -m bench.receiver
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import mqlite
from bench.broker_process import broker
from bench.harness import Result, print_table, queue_on_disk

BODY = b"x" * 256
ROUNDS = 7
IN_PROCESS_CONCURRENCY = 16
HTTP_CONCURRENCY = 64

Drain = Callable[[Any, int, int], None]


def by_hand(mq: Any, messages: int, batch: int) -> None:
    """Receive in batches, complete in batches."""
    while messages > 0:
        received = mq.receive("q", max_messages=batch)
        mq.complete_batch("q", received)
        messages -= len(received)


def by_receiver(mq: Any, messages: int, concurrency: int) -> None:
    receiver = mq.receiver("q", concurrency=concurrency)

    def handle(message: mqlite.Delivery) -> None:
        nonlocal messages
        messages -= 1
        if messages <= 0:
            receiver.stop()

    receiver.run(handle)


def rate(mq: Any, drain: Drain, messages: int, width: int) -> float:
    for _ in range(messages // 500):
        mq.send_batch("q", [BODY] * 500)
    started = time.perf_counter()
    drain(mq, messages, width)
    took = time.perf_counter() - started
    assert mq.stats("q").total == 0
    return messages / took


def compare(name: str, mq: Any, messages: int, width: int, least: float) -> Result:
    pairs = [
        (rate(mq, by_hand, messages, width), rate(mq, by_receiver, messages, width))
        for _ in range(ROUNDS)
    ]
    hand = statistics.median(pair[0] for pair in pairs)
    ours = statistics.median(pair[1] for pair in pairs)
    value = f"{ours / hand:.2f} ({hand:,.0f}/s by hand, {ours:,.0f}/s)"
    return Result(name, value, f"at least {least}", ours >= hand * least)


def measure(scale: float = 1.0) -> list[Result]:
    messages = max(int(20 * scale), 1) * 500
    results = []
    with queue_on_disk() as (mq, _):
        name = f"in the program, concurrency {IN_PROCESS_CONCURRENCY}"
        results.append(compare(name, mq, messages, IN_PROCESS_CONCURRENCY, 0.5))
    with broker() as (url, _), mqlite.connect(url) as client:
        client.create_queue("q")
        name = f"over HTTP, concurrency {HTTP_CONCURRENCY}"
        results.append(compare(name, client, messages, HTTP_CONCURRENCY, 0.7))
    return results


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    print_table(measure())

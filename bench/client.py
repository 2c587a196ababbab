"""The HTTP clients, beside wrk and end to end, each party in a process of its own.

    python -m bench.client [--rounds 5] [--seconds 3]

The broker authenticates, logs every request and commits to a file (WAL, NORMAL). wrk and the
clients send the same message of 200 bytes, in turns; read the ratio of the medians. End to
end, a producer's 64 tasks send single messages, and a receiver takes and completes batches:
first as fast as they can, then at a rate that keeps nobody waiting, for the latency from just
before the send to the receipt.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

import mqlite
from bench import http_send
from bench.harness import Result, print_table
from bench.http_send import TOKEN, with_wrk

TASKS = 64
BODY = b"x" * 200
MESSAGES = 30_000
PACED = 2_000
PACE = 500
"""Messages a second."""


@contextmanager
def broker() -> Iterator[tuple[str, psutil.Process]]:
    """A broker process with a queue `bench`; yields its URL."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, http_send.__file__, "--serve", "broker"]
        command += ["--db", str(Path(folder) / "mq.db")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            yield server.stdout.readline().strip(), psutil.Process(server.pid)
            server.terminate()


def cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def sync_sends(url: str, seconds: float) -> float:
    """Messages a second of one thread over one connection."""
    sent = 0
    with mqlite.connect(url, token=TOKEN) as client:
        client.send("bench", BODY)
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            client.send("bench", BODY, content_type="text/plain")
            sent += 1
    return sent / seconds


def async_sends(url: str, seconds: float) -> float:
    """Messages a second of 64 tasks that share a client."""

    async def main() -> float:
        sent = 0
        async with await mqlite.connect_async(url, token=TOKEN) as client:
            await client.send("bench", BODY)
            until = time.perf_counter() + seconds

            async def one() -> None:
                nonlocal sent
                while time.perf_counter() < until:
                    await client.send("bench", BODY, content_type="text/plain")
                    sent += 1

            await asyncio.gather(*(one() for _ in range(TASKS)))
        return sent / seconds

    return asyncio.run(main())


def beside_wrk(rounds: int, seconds: float) -> list[Result]:
    if shutil.which("wrk") is None:
        print("wrk is not installed; the clients are not compared with it", file=sys.stderr)
        return []
    with broker() as (url, _):
        return [
            _ratio(
                f"{TASKS} tasks, one async client, beside wrk with {TASKS} connections",
                lambda: with_wrk(url, seconds, TASKS).rate,
                lambda: async_sends(url, seconds),
                rounds,
                least=1.0,
            ),
            _ratio(
                "sync client, beside wrk with one connection",
                lambda: with_wrk(url, seconds, 1).rate,
                lambda: sync_sends(url, seconds),
                rounds,
                least=0.5,
            ),
        ]


def _ratio(
    name: str,
    baseline: Callable[[], float],
    subject: Callable[[], float],
    rounds: int,
    *,
    least: float,
) -> Result:
    pairs = [(baseline(), subject()) for _ in range(rounds)]
    base, ours = (statistics.median(rates) for rates in zip(*pairs, strict=True))
    value = f"{ours / base:.2f} ({base:,.0f}/s wrk, {ours:,.0f}/s)"
    return Result(name, value, f"at least {least}", ours / base >= least)


def produce(url: str, number: int, pace: int) -> dict[str, Any]:
    """Send messages that say when they were sent; `pace` messages a second, 0 for as fast as
    64 tasks can."""

    async def main() -> None:
        left = iter(range(number))
        async with await mqlite.connect_async(url, token=TOKEN) as client:
            began = time.monotonic()

            async def one() -> None:
                for index in left:
                    if pace:
                        await asyncio.sleep(max(began + index / pace - time.monotonic(), 0))
                    await client.send("bench", b"%-200d" % time.monotonic_ns())

            await asyncio.gather(*(one() for _ in range(TASKS)))

    asyncio.run(main())
    return {"cpu": time.process_time()}


def consume(url: str, number: int) -> dict[str, Any]:
    """Receive and complete in batches; answers when it began and ended, and the latencies."""
    latencies: list[float] = []
    with mqlite.connect(url, token=TOKEN) as client:
        began = 0.0
        while len(latencies) < number:
            messages = client.receive("bench", max_messages=256, wait="20s")
            now = time.monotonic_ns()
            began = began or now / 1e9
            latencies += [(now - int(message.body)) / 1e6 for message in messages]
            client.complete_batch("bench", messages)
    ended = time.monotonic()
    return {"cpu": time.process_time(), "seconds": ended - began, "latencies": latencies}


def end_to_end(number: int, pace: int) -> dict[str, Any]:
    """One run with a producer and a receiver process."""
    with broker() as (url, process):
        before = cpu(process)
        load = ["--number", str(number), "--pace", str(pace)]
        parties = {
            name: subprocess.Popen(
                [sys.executable, "-m", "bench.client", f"--{name}", url, *load],
                stdout=subprocess.PIPE,
            )
            for name in ("consume", "produce")
        }
        told = {name: json.loads(party.communicate()[0]) for name, party in parties.items()}
        broker_cpu = cpu(process) - before
    each = {
        "producer": told["produce"]["cpu"],
        "receiver": told["consume"]["cpu"],
        "broker": broker_cpu,
    }
    return {
        "rate": number / told["consume"]["seconds"],
        "cpu": {name: seconds / number * 1e6 for name, seconds in each.items()},
        "latencies": statistics.quantiles(told["consume"]["latencies"], n=100),
    }


def through_a_broker(rounds: int) -> list[Result]:
    full = [end_to_end(MESSAGES, 0) for _ in range(rounds)]
    paced = [end_to_end(PACED, PACE) for _ in range(rounds)]

    def median(pick: Callable[[dict[str, Any]], float], runs: list[dict[str, Any]]) -> float:
        return statistics.median(map(pick, runs))

    costs = ", ".join(
        f"{name} {median(lambda run, name=name: run['cpu'][name], full):.0f}"  # type: ignore[misc]
        for name in full[0]["cpu"]
    )
    times = " / ".join(
        f"{median(lambda run, at=at: run['latencies'][at - 1], paced):.1f}"  # type: ignore[misc]
        for at in (50, 95, 99)
    )
    return [
        Result(
            "end to end, single sends, batches received and completed",
            f"{median(lambda run: run['rate'], full):,.0f} messages/s",
            "reported",
            True,
        ),
        Result("processor time per message, start included", f"{costs} µs", "reported", True),
        Result(
            f"latency at {PACE} messages/s, 50th / 95th / 99th percentile",
            f"{times} ms",
            "reported",
            True,
        ),
    ]


def measure(rounds: int = 5, seconds: float = 3) -> list[Result]:
    return beside_wrk(rounds, seconds) + through_a_broker(min(rounds, 3))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    for hidden in ("--produce", "--consume"):
        parser.add_argument(hidden, metavar="URL", help=argparse.SUPPRESS)
    for hidden in ("--number", "--pace"):
        parser.add_argument(hidden, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.produce:
        print(json.dumps(produce(arguments.produce, arguments.number, arguments.pace)))
    elif arguments.consume:
        print(json.dumps(consume(arguments.consume, arguments.number)))
    else:
        print_table(measure(arguments.rounds, arguments.seconds))


if __name__ == "__main__":
    main()

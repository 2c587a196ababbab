"""What being observed costs: sends over HTTP while a scraper asks for /metrics every second.

python -m bench.observe [--messages 100000] [--rounds 8] [--seconds 3] [--connections 64]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import psutil

from bench.harness import Result, print_table
from bench.http_send import TOKEN, with_asyncio, with_wrk
from mqlite.client import Client

SCRAPES = 20


@contextmanager
def broker() -> Iterator[tuple[str, psutil.Process]]:
    """`mqlite serve` with metrics, on a file of its own; yields the URL and the process."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "MQLITE_DB": f"file:{Path(folder) / 'mq.db'}",
            "MQLITE_TOKENS": TOKEN,
            "MQLITE_METRICS": "on",
        }
        command = [sys.executable, "-m", "mqlite", "serve", "--addr", "127.0.0.1:0"]
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if line.startswith(b"ready: "):
                    break
            else:
                raise RuntimeError("the broker did not start")
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield line.removeprefix(b"ready: ").decode().strip(), psutil.Process(process.pid)
            process.terminate()


class Scraper:
    """Asks for the metrics every second, for the duration of a `with` block."""

    def __init__(self, url: str) -> None:
        self.bytes = 0
        self._request = urllib.request.Request(
            f"{url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        self._stop = threading.Event()

    def __enter__(self) -> Scraper:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def scrape(self) -> None:
        with urllib.request.urlopen(self._request) as answer:
            self.bytes = len(answer.read())

    def _run(self) -> None:
        while not self._stop.is_set():
            started = time.perf_counter()
            self.scrape()
            took = time.perf_counter() - started
            self._stop.wait(max(0.0, 1 - took))


def measure(
    messages: int = 100_000, rounds: int = 8, seconds: float = 3, connections: int = 64
) -> list[Result]:
    load = with_wrk if shutil.which("wrk") else with_asyncio
    with broker() as (url, process), Client(url, token=TOKEN) as client:
        client.create_queue("bench")
        client.create_queue("retained")
        for _ in range(messages // 500):
            client.send_batch("retained", [b"x" * 256] * 500)
        scraper = Scraper(url)
        before = _processor_seconds(process)
        for _ in range(SCRAPES):
            scraper.scrape()
        each = (_processor_seconds(process) - before) / SCRAPES
        load(url, 1, connections)
        rates: dict[bool, list[float]] = {False: [], True: []}
        for round_ in range(rounds):
            for scraped in (False, True) if round_ % 2 else (True, False):
                with scraper if scraped else nullcontext():
                    rates[scraped].append(load(url, seconds, connections).rate)
    ratio = statistics.median(s / u for u, s in zip(rates[False], rates[True], strict=True))
    alone, beside = (statistics.median(rates[scraped]) for scraped in (False, True))
    return [
        Result(
            f"sends while scraped every second over {messages:,} retained messages",
            f"{ratio:.2f} of the rate without ({beside:,.0f}/s beside {alone:,.0f}/s)",
            "at least 0.9",
            ratio >= 0.9,
        ),
        Result(
            "a scrape of an idle broker",
            f"{each * 1000:.0f} ms of processor time, {scraper.bytes / 1024:.0f} KiB",
            "reported",
            True,
        ),
    ]


def _processor_seconds(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--connections", type=int, default=64)
    print_table(measure(**vars(parser.parse_args())))

"""Measuring as ratios: two ways of doing the same work, alternately, in one run.

Absolute figures depend on the machine and on what else it does; the median of alternating
rounds divided by the other median depends on the code.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import mqlite
from mqlite.clock import Clock

Work = Callable[[int], None]


class Result(NamedTuple):
    """One line of the table; `target` is what the project promises."""

    name: str
    value: str
    target: str
    met: bool


def seconds_each(work: Work, times: int) -> float:
    started = time.perf_counter()
    work(times)
    return (time.perf_counter() - started) / times


def ratio_of_rates(
    name: str, baseline: Work, subject: Work, *, times: int, least: float, rounds: int = 9
) -> Result:
    """How much of the baseline's rate the subject reaches; beside it the same of the processor
    time of the calling thread, which other processes disturb less."""
    pairs = [(_timed(baseline, times), _timed(subject, times)) for _ in range(rounds)]
    base, base_cpu = (statistics.median(pair[0][i] for pair in pairs) for i in (0, 1))
    ours, ours_cpu = (statistics.median(pair[1][i] for pair in pairs) for i in (0, 1))
    ratio = base / ours
    value = (
        f"{ratio:.2f} ({1 / base:,.0f}/s bare, {1 / ours:,.0f}/s; processor time "
        f"{base_cpu / ours_cpu:.2f}, {base_cpu * 1e6:.0f} of {ours_cpu * 1e6:.0f} us)"
    )
    return Result(name, value, f"at least {least}", ratio >= least)


def _timed(work: Work, times: int) -> tuple[float, float]:
    """Seconds for each time, and seconds of processor time."""
    started = time.thread_time()
    seconds = seconds_each(work, times)
    return seconds, (time.thread_time() - started) / times


@contextmanager
def queue_on_disk(
    clock: Clock | None = None, **settings: object
) -> Iterator[tuple[mqlite.Embedded, Path]]:
    """A queue `q` on a file of its own; with a clock nothing runs in the background."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mq.db"
        with mqlite.open(str(path), clock=clock) as mq:
            mq.create_queue("q", **settings)  # type: ignore[arg-type]
            yield mq, path


def print_table(results: list[Result]) -> None:
    print("| measured | value | target | met |")
    print("|---|---|---|---|")
    for result in results:
        print(
            f"| {result.name} | {result.value} | {result.target} | {'yes' if result.met else '**no**'} |"
        )

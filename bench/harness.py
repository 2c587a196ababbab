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
    """How much of the baseline's rate the subject reaches."""
    pairs = [(seconds_each(baseline, times), seconds_each(subject, times)) for _ in range(rounds)]
    base = statistics.median(pair[0] for pair in pairs)
    ours = statistics.median(pair[1] for pair in pairs)
    ratio = base / ours
    value = f"{ratio:.2f} ({1 / base:,.0f}/s bare, {1 / ours:,.0f}/s)"
    return Result(name, value, f"at least {least}", ratio >= least)


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

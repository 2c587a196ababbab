"""The text format of Prometheus, version 0.0.4: families of samples as lines.

Written here, with no library: a scrape is thousands of lines, and whoever writes them keeps
the senders of the same process from the interpreter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from time import sleep
from typing import Final

from mqlite.observation.schema import Histogram

CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"

SLICE: Final = 1_000
"""After this many samples, pause so that other threads can run. Without it a scrape of 10,000
queues cost a third of that second's sends."""

_BREAK_S: Final = 0.00005
"""Zero would return before another thread wakes."""

Labels = Sequence[str]
Samples = Sequence[tuple[Labels, float]]


def gauge(name: str, text: str, labels: Labels, samples: Samples) -> list[str]:
    """The lines of a family: its `name`, a `text` of one line that explains it, the names of
    its `labels`, and a value for each set of label values. Sleeps between slices of many samples:
    not to be called on an event loop."""
    return [*_head("gauge", name, text), *_values(name, labels, samples)]


def counter(name: str, text: str, labels: Labels, samples: Samples) -> list[str]:
    """The same for what only grows; its name ends in `_total`. Sleeps too."""
    return [*_head("counter", name, text), *_values(name, labels, samples)]


def histogram(
    name: str, text: str, labels: Labels, samples: Iterable[tuple[Labels, Histogram]]
) -> list[str]:
    """The same for durations in buckets, with at least one label."""
    lines = _head("histogram", name, text)
    pattern = _pattern(labels)
    for values, found in samples:
        pairs = pattern % tuple(map(_escaped, values))
        lines += [
            f'{name}_bucket{{{pairs},le="{bucket.le:g}"}} {bucket.count}'
            for bucket in found.buckets
        ]
        lines += [
            f'{name}_bucket{{{pairs},le="+Inf"}} {found.count}',
            f"{name}_count{{{pairs}}} {found.count}",
            f"{name}_sum{{{pairs}}} {found.sum}",
        ]
    return lines


def written(families: Iterable[list[str]]) -> bytes:
    """The families as one answer."""
    return ("\n".join([line for lines in families for line in lines]) + "\n").encode()


def _head(kind: str, name: str, text: str) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def _values(name: str, labels: Labels, samples: Samples) -> list[str]:
    # By one pattern for all: thousands of queues make hundreds of thousands of samples.
    pattern = f"{name}{{{_pattern(labels)}}} %s" if labels else f"{name} %s"
    lines: list[str] = []
    for start in range(0, len(samples), SLICE):
        if start:
            sleep(_BREAK_S)
        # With a plus a bool is a number.
        lines += [
            pattern % (*map(_escaped, values), +value)
            for values, value in samples[start : start + SLICE]
        ]
    return lines


def _pattern(labels: Labels) -> str:
    return ",".join(f'{label}="%s"' for label in labels)


@lru_cache(4096)
def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")

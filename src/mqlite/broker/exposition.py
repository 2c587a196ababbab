"""The text format of Prometheus, version 0.0.4: families of samples as lines.

Written here, with no library: a scrape is thousands of lines, and whoever writes them keeps
the senders of the same process from the interpreter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import ClassVar


class Family:
    """Metrics of one name, a line for each set of label values."""

    kind: ClassVar[str]
    suffix: ClassVar[str] = ""

    def __init__(self, name: str, text: str, labels: Sequence[str] = ()) -> None:
        """`text` explains it in one line."""
        self._name = name + self.suffix
        self._labels = labels
        self.lines = [f"# HELP {self._name} {text}", f"# TYPE {self._name} {self.kind}"]

    def add(self, labels: Iterable[str], value: float) -> None:
        pairs = self._pairs(labels)
        name = f"{self._name}{{{pairs}}}" if pairs else self._name
        self.lines.append(f"{name} {float(value)!r}")

    def _pairs(self, labels: Iterable[str]) -> str:
        return ",".join(
            [
                f'{name}="{_escaped(value)}"'
                for name, value in zip(self._labels, labels, strict=True)
            ]
        )


class Gauge(Family):
    kind = "gauge"


class Counter(Family):
    """Its name is written with `_total` at the end."""

    kind = "counter"
    suffix = "_total"


class Histogram(Family):
    kind = "histogram"

    def add_buckets(
        self, labels: Iterable[str], buckets: Iterable[tuple[float, int]], count: int, total: float
    ) -> None:
        """`buckets` are upper bounds, each with how many were at most that; `total` is the sum
        of all `count`."""
        name, pairs = self._name, self._pairs(labels)
        self.lines += [
            f'{name}_bucket{{{pairs},le="{bound:g}"}} {float(number)!r}'
            for bound, number in buckets
        ]
        self.lines += [
            f'{name}_bucket{{{pairs},le="+Inf"}} {float(count)!r}',
            f"{name}_count{{{pairs}}} {float(count)!r}",
            f"{name}_sum{{{pairs}}} {total!r}",
        ]


def written(families: Iterable[Family]) -> bytes:
    return "".join(f"{line}\n" for family in families for line in family.lines).encode()


@lru_cache(4096)
def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")

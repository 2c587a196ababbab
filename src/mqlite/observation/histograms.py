"""Durations, counted as they come."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from mqlite.observation.schema import Bucket, Histogram


class Durations:
    """Counts durations in buckets. One thread at a time adds; any thread reads."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    @property
    def count(self) -> int:
        return sum(self._counts)

    def snapshot(self) -> Histogram:
        """As it is now. A duration that another thread adds meanwhile may be in the sum and not
        in the buckets yet."""
        counts = self._counts.copy()
        *upto, total = accumulate(counts)
        buckets = [
            Bucket(le=bound, count=count) for bound, count in zip(self._bounds, upto, strict=True)
        ]
        return Histogram(buckets=buckets, count=total, sum=self._sum if total else 0.0)

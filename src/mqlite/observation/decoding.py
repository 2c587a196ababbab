"""Reads an observation that came from somewhere else."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from mqlite.model import STATES
from mqlite.observation.schema import Histogram, Observation, QueueGauges
from mqlite.observation.vocabulary import (
    AUTHENTICATION,
    FILTER_STAGES,
    OPERATIONS,
    STORAGE_RESULTS,
    TASKS,
)

MAX_BYTES: Final = 32 * 1024 * 1024

_DECODER: Final = msgspec.json.Decoder(Observation)


def decode(text: bytes) -> Observation:
    """The observation, checked. A newer broker may have more fields and words than are
    known here, never fewer.

    Raises ValueError for one that is over 32 MiB, incomplete, or at odds with itself.
    """
    if len(text) > MAX_BYTES:
        raise ValueError(f"the observation is {len(text)} bytes, the limit is {MAX_BYTES}")
    try:
        found = _DECODER.decode(text)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise ValueError(f"the observation is malformed: {problem}") from None
    _check_availability(found)
    _check_words(found)
    for where, histogram in _histograms(found):
        _check_histogram(where, histogram)
    return found


def _check_availability(found: Observation) -> None:
    collection, runtime, http = found.collection, found.runtime, found.http
    if collection.state == "available":
        _require(found.queues is not None, "the collection is available and queues are null")
        _require(not collection.error_code, "the collection is available and has an error_code")
        _check_queues(found, found.queues or [])
    else:
        _require(found.queues is None, "the collection is unavailable and there are queues")
        _require(bool(collection.error_code), "the collection is unavailable and has no error_code")
    _require(
        runtime.read_available == (runtime.ping_seconds is not None),
        "runtime.read_available disagrees with ping_seconds",
    )
    _require(
        runtime.db_size_available == (runtime.db_size_bytes is not None),
        "runtime.db_size_available disagrees with db_size_bytes",
    )
    if http.state == "not_applicable":
        counted = http.requests or http.handlers or http.authentication
        _require(not counted, "http is not applicable and has counted something")


def _check_queues(found: Observation, queues: list[QueueGauges]) -> None:
    _unique("queues", (queue.queue for queue in queues))
    subscriptions = sum(queue.kind == "subscription" for queue in queues)
    counted = len(queues) - subscriptions, subscriptions
    _require(
        counted == (found.queue_count, found.subscription_count),
        "queue_count and subscription_count disagree with queues",
    )
    for queue in queues:
        _require(
            sum(getattr(queue, state) for state in STATES) + queue.unexpected == queue.retained,
            f"the states of queue {queue.queue!r} do not add up to retained",
        )


def _check_words(found: Observation) -> None:
    operations = [
        (each.operation, each.outcome, each.error_code) for each in found.storage.operations
    ]
    _complete("storage.operations", operations, _every_operation())
    _complete("maintenance", [each.task for each in found.maintenance], TASKS)
    _complete("filters", [each.stage for each in found.filters], FILTER_STAGES)
    _unique("messages", ((each.queue, each.event) for each in found.messages))
    _unique("http.requests", ((each.rpc, each.code) for each in found.http.requests))
    _unique("http.handlers", (each.rpc for each in found.http.handlers))
    if found.http.state == "available":
        outcomes = [each.outcome for each in found.http.authentication]
        _complete("http.authentication", outcomes, AUTHENTICATION)


def _every_operation() -> Iterable[Hashable]:
    return ((operation, *result) for operation in OPERATIONS for result in STORAGE_RESULTS)


def _histograms(found: Observation) -> Iterable[tuple[str, Histogram]]:
    for operation in found.storage.operations:
        name = f"storage.operations[{operation.operation}, {operation.outcome}]"
        _require(
            operation.count == operation.duration_seconds.count,
            f"{name}.count disagrees with its histogram",
        )
        yield name, operation.duration_seconds
    for task in found.maintenance:
        yield f"maintenance[{task.task}]", task.duration_seconds
    for handler in found.http.handlers:
        yield f"http.handlers[{handler.rpc}]", handler.duration_seconds


def _check_histogram(where: str, histogram: Histogram) -> None:
    buckets = histogram.buckets
    bounds = all(one.le < next_one.le for one, next_one in pairwise(buckets))
    _require(bool(buckets) and bounds, f"{where}: the bounds of the histogram do not ascend")
    rising = all(one.count <= next_one.count for one, next_one in pairwise(buckets))
    _require(
        rising and buckets[-1].count <= histogram.count,
        f"{where}: the buckets of the histogram are not cumulative",
    )
    _require(
        math.isfinite(histogram.sum) and (histogram.count > 0 or histogram.sum == 0),
        f"{where}: the histogram has a sum of {histogram.sum} for {histogram.count} durations",
    )


def _complete(where: str, found: Sequence[Hashable], wanted: Iterable[Hashable]) -> None:
    _unique(where, found)
    missing = set(wanted).difference(found)
    _require(not missing, f"{where} lacks {missing}")


def _unique(where: str, found: Iterable[Hashable]) -> None:
    seen: set[Hashable] = set()
    for each in found:
        _require(each not in seen, f"{where} holds {each!r} twice")
        seen.add(each)


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise ValueError(problem)

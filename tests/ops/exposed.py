"""What `/metrics` exposes: the families of an observation in which nothing is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from mqlite import errors
from mqlite.broker.metrics import exposition
from mqlite.model import STATES
from mqlite.observation import schema, vocabulary

_SELECTOR: Final = re.compile(r"\b((?:mqlite_\w+)|up|ALERTS)\b(?:\{([^}]*)\})?")
_MATCHER: Final = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')
_TARGET: Final = frozenset({"job", "instance"})

_NO_DURATIONS: Final = schema.Histogram([schema.Bucket(1, 0)], 0, 0)


class Selector(NamedTuple):
    """A metric in an expression, and the values of labels that it asks for."""

    name: str
    labels: dict[str, list[str]]


def selectors(expression: str) -> Iterator[Selector]:
    """The selectors of mqlite's metrics in a PromQL expression."""
    for name, matchers in _SELECTOR.findall(expression):
        if name.startswith("mqlite_"):
            labels = {
                label: [value for value in values.split("|") if value]
                for label, values in _MATCHER.findall(matchers)
                if label not in _TARGET and not values.startswith("$")
            }
            yield Selector(name, labels)


def series() -> dict[str, dict[str, set[str]]]:
    """By the name of a sample, the values its labels can have."""
    found: dict[str, dict[str, set[str]]] = {}
    for family in text_string_to_metric_families(exposition(_complete()).decode()):
        for sample in family.samples:
            labels = found.setdefault(sample.name, {})
            for label, value in sample.labels.items():
                labels.setdefault(label, set()).add(value)
    return found


def _complete() -> schema.Observation:
    return schema.Observation(
        sampled_at_ms=1,
        started_at_ms=1,
        backend="local file",
        version="0",
        access="monitor",
        collection=schema.CollectionStatus("available", 1, 0.1, ""),
        queue_count=1,
        subscription_count=0,
        queues=[schema.QueueGauges("q", "queue", *[1] * len(STATES), 0, len(STATES), 1)],
        runtime=schema.Runtime("py1", True, 0.1, True, 1, 1, 1),
        messages=[schema.MessageEvents("q", event, 1) for event in vocabulary.EVENTS],
        storage=schema.Storage(
            [
                schema.StorageOperation(operation, *result, 0, 0, _NO_DURATIONS)
                for operation in vocabulary.OPERATIONS
                for result in vocabulary.STORAGE_RESULTS
            ],
            schema.Pool(1, 1, 1, 1, 1, 1),
        ),
        maintenance=[
            schema.MaintenanceTask(task, True, schema.Runs(1, 1, 1), _NO_DURATIONS, 1, 0.1)
            for task in vocabulary.TASKS
        ],
        filters=[schema.FilterFailures(stage, 1) for stage in vocabulary.FILTER_STAGES],
        http=schema.Http(
            "available",
            [schema.Requests("Send", code, 1, 1) for code in ("ok", *_codes())],
            [schema.Handler("Send", _NO_DURATIONS)],
            [schema.Authentication(outcome, 1) for outcome in vocabulary.AUTHENTICATION],
        ),
    )


def _codes() -> set[str]:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    return {kind.code for kind in kinds if issubclass(kind, errors.MqliteError)}

"""`GET /metrics`: the canonical observation as Prometheus reads it.

Nothing is counted here. Every family, label and value comes out of an `Observation`; what it
does not have is left out, never zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from mqlite.broker.exposition import Counter, Family, Gauge, Histogram, written
from mqlite.model import STATES
from mqlite.observation import schema
from mqlite.observation.schema import Observation

CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"

_RESULT: Final = ("operation", "outcome", "error_code")


def exposition(observation: Observation) -> bytes:
    """Text exposition 0.0.4."""
    return written(_families(observation))


def _families(observation: Observation) -> Iterator[Family]:
    yield from _identity(observation)
    yield from _collection(observation)
    yield from _queues(observation)
    yield from _messages(observation)
    yield from _requests(observation)
    yield from _storage(observation)
    yield from _database(observation)
    yield from _maintenance(observation)


def _identity(found: Observation) -> Iterator[Family]:
    info = Gauge(
        "mqlite_info",
        "What runs here; always 1.",
        labels=("version", "backend", "schema_version"),
    )
    info.add((found.version, found.backend, found.runtime.schema_version), 1)
    yield info
    yield _gauge(
        "mqlite_start_time_seconds",
        "When the queue was opened, in Unix time.",
        found.started_at_ms / 1000,
    )
    yield _gauge(
        "mqlite_sample_timestamp_seconds",
        "When this was sampled, in Unix time.",
        found.sampled_at_ms / 1000,
    )


def _collection(found: Observation) -> Iterator[Family]:
    collection = found.collection
    yield _gauge(
        "mqlite_collection_success",
        "1 if the queues could be counted, else 0.",
        collection.state == "available",
    )
    status = Gauge(
        "mqlite_collection_status",
        "How counting the queues went; always 1.",
        labels=("state", "error_code"),
    )
    status.add((collection.state, collection.error_code), 1)
    yield status
    yield _gauge(
        "mqlite_collection_last_success_timestamp_seconds",
        "When the queues were last counted, in Unix time; 0 before the first time.",
        collection.last_success_at_ms / 1000,
    )
    yield _gauge(
        "mqlite_collection_duration_seconds",
        "How long counting the queues took.",
        collection.duration_seconds,
    )


def _queues(found: Observation) -> Iterator[Family]:
    """Gauges of what is stored; none where it could not be counted."""
    if found.queues is None:
        return
    entities = Gauge("mqlite_entities", "Queues and subscriptions that exist.", labels=("kind",))
    entities.add(("queue",), found.queue_count)
    entities.add(("subscription",), found.subscription_count)
    yield entities
    messages = Gauge(
        "mqlite_queue_messages",
        "Messages stored in a queue, by state.",
        labels=("queue", "state"),
    )
    for queue in found.queues:
        for state in STATES:
            messages.add((queue.queue, state), getattr(queue, state))
    yield messages
    names = [(queue.queue,) for queue in found.queues]
    retained = [queue.retained for queue in found.queues]
    ages = [queue.oldest_message_age_seconds for queue in found.queues]
    for name, text, values in (
        ("retained_messages", "All messages stored in a queue.", retained),
        (
            "unexpected_messages",
            "Messages in a state that none should have.",
            [queue.unexpected for queue in found.queues],
        ),
        (
            "oldest_message_age_seconds",
            "Age of the oldest active or locked message since it was enqueued; 0 if none.",
            ages,
        ),
        ("total", "Deprecated: mqlite_queue_retained_messages.", retained),
        (
            "oldest_message_age_ms",
            "Deprecated: mqlite_queue_oldest_message_age_seconds, in milliseconds.",
            [round(age * 1000) for age in ages],
        ),
    ):
        yield _by(Gauge(f"mqlite_queue_{name}", text, labels=("queue",)), names, values)


def _messages(found: Observation) -> Iterator[Family]:
    yield _by(
        Counter(
            "mqlite_message_events",
            "What happened to messages, counted once committed.",
            labels=("queue", "event"),
        ),
        [(each.queue, each.event) for each in found.messages],
        [each.count for each in found.messages],
    )
    completed = [each for each in found.messages if each.event == "completed"]
    yield _by(
        Counter(
            "mqlite_messages_completed",
            "Messages that were completed: mqlite_message_events_total of that event.",
            labels=("queue",),
        ),
        [(each.queue,) for each in completed],
        [each.count for each in completed],
    )


def _requests(found: Observation) -> Iterator[Family]:
    http = found.http
    names = [(each.rpc, each.code) for each in http.requests]
    yield _by(
        Counter(
            "mqlite_rpc_requests",
            "Requests to an operation, by the code of the answer.",
            labels=("rpc", "code"),
        ),
        names,
        [each.count for each in http.requests],
    )
    yield _by(
        Counter(
            "mqlite_rpc_request_duration_seconds",
            "Time spent on whole requests, authentication included.",
            labels=("rpc", "code"),
        ),
        names,
        [each.duration_seconds for each in http.requests],
    )
    handlers = Histogram(
        "mqlite_rpc_duration_seconds",
        "Time from authentication to the answer; long polls wait in it.",
        labels=("rpc",),
    )
    for each in http.handlers:
        _add_histogram(handlers, (each.rpc,), each.duration_seconds)
    yield handlers
    yield _by(
        Counter("mqlite_authentication", "What became of credentials.", labels=("outcome",)),
        [(each.outcome,) for each in http.authentication],
        [each.count for each in http.authentication],
    )


def _storage(found: Observation) -> Iterator[Family]:
    operations = found.storage.operations
    names = [(each.operation, each.outcome, each.error_code) for each in operations]
    yield _by(
        Counter(
            "mqlite_storage_operations",
            "Operations of the engine, by how they ended.",
            labels=_RESULT,
        ),
        names,
        [each.count for each in operations],
    )
    durations = Histogram(
        "mqlite_storage_operation_duration_seconds",
        "Time an operation of the engine took, its wait for the writer included.",
        labels=_RESULT,
    )
    for name, each in zip(names, operations, strict=True):
        _add_histogram(durations, name, each.duration_seconds)
    yield durations
    yield _by(
        Counter(
            "mqlite_storage_retries",
            "Safe retries inside operations of the engine.",
            labels=_RESULT,
        ),
        names,
        [each.retries for each in operations],
    )
    pool = found.storage.pool
    yield _by(
        Gauge("mqlite_storage_pool_connections", "Connections to the database.", labels=("state",)),
        [("max_open",), ("open",), ("in_use",), ("idle",)],
        [pool.max_open, pool.open, pool.in_use, pool.idle],
    )
    yield _counter(
        "mqlite_storage_pool_waits", "Operations that lined up for the connection.", pool.waits
    )
    yield _counter(
        "mqlite_storage_pool_wait_duration_seconds",
        "Time spent in that line.",
        pool.wait_duration_seconds,
    )


def _database(found: Observation) -> Iterator[Family]:
    runtime = found.runtime
    yield _gauge(
        "mqlite_storage_read_available",
        "1 if the database answered a read, else 0.",
        runtime.read_available,
    )
    yield _gauge(
        "mqlite_storage_size_available",
        "1 if the size of the database on disk is known, else 0.",
        runtime.db_size_available,
    )
    for name, text, value in (
        ("ping_seconds", "How long a trivial read took.", runtime.ping_seconds),
        (
            "size_bytes",
            "The database on disk: file, log and index of the log.",
            runtime.db_size_bytes,
        ),
        ("wal_size_bytes", "The log alone; an old snapshot lets it grow.", runtime.wal_size_bytes),
        ("free_pages", "Pages of the file that hold nothing.", runtime.free_pages),
    ):
        if value is not None:
            yield _gauge(f"mqlite_storage_{name}", text, value)


def _maintenance(found: Observation) -> Iterator[Family]:
    tasks = found.maintenance
    names = [(each.task,) for each in tasks]
    yield _by(
        Gauge("mqlite_maintenance_enabled", "1 if the task runs by itself.", labels=("task",)),
        names,
        [each.enabled for each in tasks],
    )
    runs = Counter(
        "mqlite_maintenance_runs",
        "Passes of a task, by how they ended.",
        labels=("task", "outcome"),
    )
    durations = Histogram(
        "mqlite_maintenance_duration_seconds", "Time a pass took.", labels=("task",)
    )
    lag = Gauge(
        "mqlite_maintenance_lag_seconds",
        "For how long the earliest due work of a task has been waiting.",
        labels=("task",),
    )
    for each in tasks:
        for outcome in each.runs.__struct_fields__:
            runs.add((each.task, outcome), getattr(each.runs, outcome))
        _add_histogram(durations, (each.task,), each.duration_seconds)
        if each.lag_seconds is not None:
            lag.add((each.task,), each.lag_seconds)
    yield runs
    yield durations
    yield _by(
        Gauge(
            "mqlite_maintenance_last_success_timestamp_seconds",
            "When a pass last succeeded, in Unix time; 0 before the first.",
            labels=("task",),
        ),
        names,
        [each.last_success_at_ms / 1000 for each in tasks],
    )
    if any(each.lag_seconds is not None for each in tasks):
        yield lag
    yield _by(
        Counter(
            "mqlite_filter_failures",
            "Messages a subscription did not get because its filter failed.",
            labels=("stage",),
        ),
        [(each.stage,) for each in found.filters],
        [each.count for each in found.filters],
    )


def _gauge(name: str, text: str, value: float) -> Family:
    return _by(Gauge(name, text), [()], [value])


def _counter(name: str, text: str, value: float) -> Family:
    return _by(Counter(name, text), [()], [value])


def _by(family: Family, labels: Sequence[tuple[str, ...]], values: Sequence[float]) -> Family:
    for label, value in zip(labels, values, strict=True):
        family.add(label, value)
    return family


def _add_histogram(family: Histogram, labels: tuple[str, ...], histogram: schema.Histogram) -> None:
    buckets = [(bucket.le, bucket.count) for bucket in histogram.buckets]
    family.add_buckets(labels, buckets, histogram.count, histogram.sum)

"""`GET /metrics`: the canonical observation as Prometheus reads it.

Nothing is counted here. Every family, label and value comes out of an `Observation`; what it
does not have is left out, never zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from mqlite.broker.exposition import counter, gauge, histogram, written
from mqlite.model import STATES
from mqlite.observation.schema import (
    CollectionStatus,
    Http,
    MaintenanceTask,
    MessageEvents,
    Observation,
    Pool,
    QueueGauges,
    Runtime,
    StorageOperation,
)

Families = Iterator[list[str]]


def exposition(observation: Observation) -> bytes:
    """Text exposition 0.0.4."""
    return written(_families(observation))


def _families(found: Observation) -> Families:
    yield from _identity(found)
    yield from _collection(found.collection)
    if found.queues is not None:
        yield from _entities(found)
        yield from _queues(found.queues)
    yield from _messages(found.messages)
    yield from _requests(found.http)
    yield from _operations(found.storage.operations)
    yield from _pool(found.storage.pool)
    yield from _database(found.runtime)
    yield from _maintenance(found.maintenance)
    yield from _filters(found)


def _identity(found: Observation) -> Families:
    yield gauge(
        "mqlite_info",
        "What runs here; always 1.",
        ("version", "backend", "schema_version"),
        [((found.version, found.backend, found.runtime.schema_version), 1)],
    )
    yield _single(
        "mqlite_start_time_seconds",
        "When the queue was opened, in Unix time.",
        found.started_at_ms / 1000,
    )
    yield _single(
        "mqlite_sample_timestamp_seconds",
        "When this was sampled, in Unix time.",
        found.sampled_at_ms / 1000,
    )


def _collection(collection: CollectionStatus) -> Families:
    yield _single(
        "mqlite_collection_success",
        "1 if the queues could be counted, else 0.",
        collection.state == "available",
    )
    yield gauge(
        "mqlite_collection_status",
        "How counting the queues went; always 1.",
        ("state", "error_code"),
        [((collection.state, collection.error_code), 1)],
    )
    yield _single(
        "mqlite_collection_last_success_timestamp_seconds",
        "When the queues were last counted, in Unix time; 0 before the first time.",
        collection.last_success_at_ms / 1000,
    )
    yield _single(
        "mqlite_collection_duration_seconds",
        "How long counting the queues took.",
        collection.duration_seconds,
    )


def _entities(found: Observation) -> Families:
    yield gauge(
        "mqlite_entities",
        "Queues and subscriptions that exist.",
        ("kind",),
        [(("queue",), found.queue_count), (("subscription",), found.subscription_count)],
    )


def _queues(queues: list[QueueGauges]) -> Families:
    queue = ("queue",)
    yield gauge(
        "mqlite_queue_messages",
        "Messages stored in a queue, by state.",
        ("queue", "state"),
        [((each.queue, state), getattr(each, state)) for each in queues for state in STATES],
    )
    yield gauge(
        "mqlite_queue_retained_messages",
        "All messages stored in a queue.",
        queue,
        [((each.queue,), each.retained) for each in queues],
    )
    yield gauge(
        "mqlite_queue_unexpected_messages",
        "Messages in a state that none should have.",
        queue,
        [((each.queue,), each.unexpected) for each in queues],
    )
    yield gauge(
        "mqlite_queue_oldest_message_age_seconds",
        "Age of the oldest active or locked message since it was enqueued; 0 if none.",
        queue,
        [((each.queue,), each.oldest_message_age_seconds) for each in queues],
    )
    yield gauge(
        "mqlite_queue_total",
        "Deprecated: mqlite_queue_retained_messages.",
        queue,
        [((each.queue,), each.retained) for each in queues],
    )
    yield gauge(
        "mqlite_queue_oldest_message_age_ms",
        "Deprecated: mqlite_queue_oldest_message_age_seconds, in milliseconds.",
        queue,
        [((each.queue,), round(each.oldest_message_age_seconds * 1000)) for each in queues],
    )


def _messages(messages: list[MessageEvents]) -> Families:
    yield counter(
        "mqlite_message_events_total",
        "What happened to messages, counted once committed.",
        ("queue", "event"),
        [((each.queue, each.event), each.count) for each in messages],
    )
    yield counter(
        "mqlite_messages_completed_total",
        "Messages that were completed: mqlite_message_events_total of that event.",
        ("queue",),
        [((each.queue,), each.count) for each in messages if each.event == "completed"],
    )


def _requests(http: Http) -> Families:
    yield counter(
        "mqlite_rpc_requests_total",
        "Requests to an operation, by the code of the answer.",
        ("rpc", "code"),
        [((each.rpc, each.code), each.count) for each in http.requests],
    )
    yield counter(
        "mqlite_rpc_request_duration_seconds_total",
        "Time spent on whole requests, authentication included.",
        ("rpc", "code"),
        [((each.rpc, each.code), each.duration_seconds) for each in http.requests],
    )
    yield histogram(
        "mqlite_rpc_duration_seconds",
        "Time from authentication to the answer; long polls wait in it.",
        ("rpc",),
        [((each.rpc,), each.duration_seconds) for each in http.handlers],
    )
    yield counter(
        "mqlite_authentication_total",
        "What became of credentials.",
        ("outcome",),
        [((each.outcome,), each.count) for each in http.authentication],
    )


def _operations(operations: list[StorageOperation]) -> Families:
    labels = ("operation", "outcome", "error_code")
    ends = [((each.operation, each.outcome, each.error_code), each) for each in operations]
    yield counter(
        "mqlite_storage_operations_total",
        "Operations of the engine, by how they ended.",
        labels,
        [(end, each.count) for end, each in ends],
    )
    yield histogram(
        "mqlite_storage_operation_duration_seconds",
        "Time an operation of the engine took, its wait for the writer included.",
        labels,
        [(end, each.duration_seconds) for end, each in ends],
    )
    yield counter(
        "mqlite_storage_retries_total",
        "Safe retries inside operations of the engine.",
        labels,
        [(end, each.retries) for end, each in ends],
    )


def _pool(pool: Pool) -> Families:
    yield gauge(
        "mqlite_storage_pool_connections",
        "Connections to the database.",
        ("state",),
        [
            (("max_open",), pool.max_open),
            (("open",), pool.open),
            (("in_use",), pool.in_use),
            (("idle",), pool.idle),
        ],
    )
    yield counter(
        "mqlite_storage_pool_waits_total",
        "Operations that lined up for the connection that writes.",
        (),
        [((), pool.waits)],
    )
    yield counter(
        "mqlite_storage_pool_wait_duration_seconds_total",
        "Time spent in that line.",
        (),
        [((), pool.wait_duration_seconds)],
    )


def _database(runtime: Runtime) -> Families:
    yield _single(
        "mqlite_storage_read_available",
        "1 if the database answered a read, else 0.",
        runtime.read_available,
    )
    yield _single(
        "mqlite_storage_size_available",
        "1 if the size of the database on disk is known, else 0.",
        runtime.db_size_available,
    )
    for name, text, value in (
        ("mqlite_storage_ping_seconds", "How long a trivial read took.", runtime.ping_seconds),
        (
            "mqlite_storage_size_bytes",
            "The database on disk: file, write-ahead log and its index.",
            runtime.db_size_bytes,
        ),
        (
            "mqlite_storage_wal_size_bytes",
            "The write-ahead log alone; an old snapshot lets it grow.",
            runtime.wal_size_bytes,
        ),
        (
            "mqlite_storage_free_pages",
            "Pages of the file that hold nothing.",
            runtime.free_pages,
        ),
    ):
        if value is not None:
            yield _single(name, text, value)


def _maintenance(tasks: list[MaintenanceTask]) -> Families:
    yield gauge(
        "mqlite_maintenance_enabled",
        "1 if the task runs by itself.",
        ("task",),
        [((each.task,), each.enabled) for each in tasks],
    )
    yield counter(
        "mqlite_maintenance_runs_total",
        "Passes of a task, by how they ended.",
        ("task", "outcome"),
        [
            ((each.task, outcome), getattr(each.runs, outcome))
            for each in tasks
            for outcome in each.runs.__struct_fields__
        ],
    )
    yield histogram(
        "mqlite_maintenance_duration_seconds",
        "Time a pass took.",
        ("task",),
        [((each.task,), each.duration_seconds) for each in tasks],
    )
    yield gauge(
        "mqlite_maintenance_last_success_timestamp_seconds",
        "When a pass last succeeded, in Unix time; 0 before the first.",
        ("task",),
        [((each.task,), each.last_success_at_ms / 1000) for each in tasks],
    )
    lags = [((each.task,), each.lag_seconds) for each in tasks if each.lag_seconds is not None]
    if lags:
        yield gauge(
            "mqlite_maintenance_lag_seconds",
            "For how long the earliest due work of a task has been waiting.",
            ("task",),
            lags,
        )


def _filters(found: Observation) -> Families:
    yield counter(
        "mqlite_filter_failures_total",
        "Messages a subscription did not get because its filter failed.",
        ("stage",),
        [((each.stage,), each.count) for each in found.filters],
    )


def _single(name: str, text: str, value: float) -> list[str]:
    """A family of one sample without labels."""
    return gauge(name, text, (), [((), value)])

"""The form of an observation, the same in process, over HTTP and on the command line.

Field names are those of the wire. Times are epoch milliseconds, durations seconds, sizes
bytes. Counters start at zero when the queue is opened. A value that could not be had is
None, never zero.

Words are those of `vocabulary`. Only the two states, on which it depends what else must be
there, are closed sets: a newer broker may have words that are not known here.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from mqlite.observation.vocabulary import CollectionState, HttpState

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Millis = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]


class Part(msgspec.Struct, omit_defaults=True):
    """Base of all parts: every field must be there, unless it has a default."""


class Bucket(Part):
    """How many durations were at most `le` seconds, those of smaller buckets included."""

    le: Seconds
    count: Count


class Histogram(Part):
    """Durations in ascending cumulative buckets. `count` is all of them, also those above
    the last bound; `sum` is in seconds."""

    buckets: list[Bucket]
    count: Count
    sum: Seconds


class CollectionStatus(Part):
    """How the queue counts were had. `last_success_at_ms` is 0 before the first success;
    `error_code` is empty where the state is `available`."""

    state: CollectionState
    last_success_at_ms: Millis
    duration_seconds: Seconds
    error_code: str


class QueueGauges(Part):
    """The messages of one queue or subscription, which `kind` tells. `unexpected` are rows in a
    state that is none of the five; `retained` is all of them. The age is that of the oldest
    active or locked message since it was first enqueued, 0 where there is none."""

    queue: str
    kind: str
    active: Count
    locked: Count
    deferred: Count
    scheduled: Count
    dead_lettered: Count
    unexpected: Count
    retained: Count
    oldest_message_age_seconds: Seconds


class Runtime(Part):
    """The database itself. `ping_seconds` is None where a read failed; the sizes are None
    where there is no local file, or it cannot be looked at. `wal_size_bytes` and
    `free_pages` are not upstream's."""

    schema_version: str
    read_available: bool
    ping_seconds: Seconds | None
    db_size_available: bool
    db_size_bytes: Count | None
    wal_size_bytes: Count | None
    free_pages: Count | None


class MessageEvents(Part):
    """How often something happened to messages of a queue; see `vocabulary.EVENTS`."""

    queue: str
    event: str
    count: Count


class ErrorDetail(Part):
    """A failure, explained without quoting anything of it. `step` is the operation that
    failed. Failures of the same kind have the same `fingerprint`. `sqlite_code` is SQLite's
    name for what it answered, None where it was not asked; `http_status` is what a database
    behind a network answered, and so None for a local file."""

    at_ms: Millis
    step: str
    category: str
    explanation: str
    fingerprint: str
    sqlite_code: str | None = None
    http_status: int | None = None


class StorageOperation(Part):
    """Operations of the engine that ended the same way. `last_error` is the latest of them,
    while the count is of all."""

    operation: str
    outcome: str
    error_code: str
    count: Count
    retries: Count
    duration_seconds: Histogram
    last_error: ErrorDetail | None = None


class Pool(Part):
    """The connections to the database, and the waits for the one that writes."""

    max_open: Count
    open: Count
    in_use: Count
    idle: Count
    waits: Count
    wait_duration_seconds: Seconds


class Storage(Part):
    """Every way for an operation to end is there, also those that never happened."""

    operations: list[StorageOperation]
    pool: Pool


class Runs(Part):
    """Passes of a maintenance task by how they ended."""

    success: Count
    error: Count
    interrupted: Count


class Diagnostics(Part):
    """How a task fares: its latest outcome, failed passes in a row, when it last recovered
    from such a row (0: never), and its latest failed steps, the newest last."""

    outcome: str
    last_run_at_ms: Millis
    consecutive_failures: Count
    recovered_at_ms: Millis
    failures: Annotated[list[ErrorDetail], msgspec.Meta(max_length=8)]


class MaintenanceTask(Part):
    """`enabled` says whether the task runs by itself. `lag_seconds`, not upstream's, is for
    how long the earliest due work has been waiting; None where the task knows no due time,
    or it could not be had."""

    task: str
    enabled: bool
    runs: Runs
    duration_seconds: Histogram
    last_success_at_ms: Millis
    lag_seconds: Seconds | None
    diagnostics: Diagnostics | None = None


class FilterFailures(Part):
    """Messages that a subscription did not get because its filter failed."""

    stage: str
    count: Count


class Requests(Part):
    """Requests to one operation that were answered with the same code (`ok`, or an error
    code). The duration is the sum over whole requests, authentication included."""

    rpc: str
    code: str
    count: Count
    duration_seconds: Seconds


class Handler(Part):
    """How long an operation took once its caller was known, long polls included."""

    rpc: str
    duration_seconds: Histogram


class Authentication(Part):
    """Requests by what became of their credential."""

    outcome: str
    count: Count


class Http(Part):
    """What the broker answered. Where the queue is asked in process there is no broker:
    `not_applicable`, and nothing was counted."""

    state: HttpState
    requests: list[Requests]
    handlers: list[Handler]
    authentication: list[Authentication]


class Observation(Part):
    """A queue and its work, sampled over a moment. The gauges of the queues share one read and
    one clock value, `sampled_at_ms`; `queues` is None where that read failed. A read of more
    than a second goes on in a new snapshot of the database."""

    sampled_at_ms: Millis
    started_at_ms: Millis
    backend: str
    version: str
    access: str
    collection: CollectionStatus
    queue_count: Count
    subscription_count: Count
    queues: list[QueueGauges] | None
    runtime: Runtime
    messages: list[MessageEvents]
    storage: Storage
    maintenance: list[MaintenanceTask]
    filters: list[FilterFailures]
    http: Http


NO_HTTP = Http(state="not_applicable", requests=[], handlers=[], authentication=[])

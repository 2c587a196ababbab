"""What an open queue tells of itself: its status, and the observation of all its work."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final

from mqlite import __version__
from mqlite.engine import browse, inventory
from mqlite.engine.inventory import Inventory, QueueCounts
from mqlite.errors import Closed, InTransaction, WrongProcess
from mqlite.model import STATES, StoreStatus
from mqlite.observation.faults import fault_of
from mqlite.observation.schema import (
    NO_HTTP,
    CollectionStatus,
    Observation,
    QueueGauges,
    Runtime,
    Storage,
)
from mqlite.stores.sqlite.ledger import SCHEMA_VERSION

if TYPE_CHECKING:
    from mqlite.stores.sqlite import SqliteStore


_NOT_NOW: Final = (Closed, InTransaction, WrongProcess)
"""Errors that say of the one who asks that he may not, and nothing of the database."""

_NOT_COUNTED: Final = "queues and subscriptions could not be counted, and are told as 0"


class Observer:
    """Observes one store. Any thread may ask."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._last_success = 0
        self._live: dict[int, str] = {}

    def status(self) -> StoreStatus:
        """The store, for an operator. A database that cannot be read leaves the counts of
        queues and subscriptions at 0, with a warning. Raises Closed, InTransaction,
        WrongProcess."""
        try:
            counts = self._store.run(browse.counts())
        except _NOT_NOW:
            raise
        except Exception:  # of whatever kind, as below; the operation is counted and logged
            status = self._store.status()
            status.warnings.append(_NOT_COUNTED)
            return status
        return self._store.status(*counts)

    def observe(self) -> Observation:
        """Everything, as of now. A database that cannot be read makes the collection
        unavailable, and leaves the counters. Raises Closed, InTransaction, WrongProcess."""
        store, recorder = self._store, self._store.recorder
        found, collection = self._collect()
        counted = [] if found is None else [_gauges(queue, found.at) for queue in found.queues]
        subscriptions = sum(queue.kind == "subscription" for queue in counted)
        lags = {} if found is None else {name: ms / 1000 for name, ms in found.lags.items()}
        return Observation(
            sampled_at_ms=store.clock.now() if found is None else found.at,
            started_at_ms=recorder.started_at_ms,
            backend=store.location.backend,
            version=__version__,
            access="embedded",
            collection=collection,
            queue_count=len(counted) - subscriptions,
            subscription_count=subscriptions,
            queues=None if found is None else counted,
            runtime=self._runtime(),
            messages=recorder.effects.snapshot(self._live),
            storage=Storage(operations=recorder.storage.snapshot(), pool=store.pool()),
            maintenance=recorder.maintenance.snapshot(lags),
            filters=recorder.effects.filter_failures(),
            http=NO_HTTP,
        )

    def _collect(self) -> tuple[Inventory | None, CollectionStatus]:
        started = perf_counter()
        found: Inventory | None = None
        code = ""
        try:
            found = self._store.run(inventory.count_messages())
        except _NOT_NOW:
            raise
        except Exception as error:  # of whatever kind: to be observed is what it is for
            code = fault_of(error).code
        else:
            self._last_success = found.at
            self._live = {queue.id: queue.name for queue in found.queues}
        return found, CollectionStatus(
            state="unavailable" if found is None else "available",
            last_success_at_ms=self._last_success,
            duration_seconds=perf_counter() - started,
            error_code=code,
        )

    def _runtime(self) -> Runtime:
        probe = self._store.probe()
        return Runtime(
            schema_version=SCHEMA_VERSION,
            read_available=probe.ping_s is not None,
            ping_seconds=probe.ping_s,
            db_size_available=probe.file_bytes is not None,
            db_size_bytes=probe.file_bytes,
            wal_size_bytes=probe.log_bytes,
            free_pages=probe.free_pages,
        )


def _gauges(queue: QueueCounts, now: int) -> QueueGauges:
    states = {state: getattr(queue, state) for state in STATES}
    age_ms = 0 if queue.oldest_at is None else max(now - queue.oldest_at, 0)
    return QueueGauges(
        queue=queue.name,
        kind=queue.kind,
        **states,
        unexpected=0,  # a rule of the table keeps every row in one of the five
        retained=sum(states.values()),
        oldest_message_age_seconds=age_ms / 1000,
    )

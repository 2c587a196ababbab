"""Short ways to look at an observation."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from mqlite.observation.schema import MaintenanceTask, Observation, QueueGauges, StorageOperation
from patience import start


def events(found: Observation, queue: str = "q") -> dict[str, int]:
    """What happened to messages of a queue."""
    return {each.event: each.count for each in found.messages if each.queue == queue and each.count}


def ended(found: Observation) -> dict[tuple[str, str, str], int]:
    """Storage operations that happened."""
    return {
        (each.operation, each.outcome, each.error_code): each.count
        for each in found.storage.operations
        if each.count
    }


def operation(
    found: Observation, kind: str, outcome: str = "ok", code: str = ""
) -> StorageOperation:
    [match] = [
        each
        for each in found.storage.operations
        if (each.operation, each.outcome, each.error_code) == (kind, outcome, code)
    ]
    return match


def task(found: Observation, name: str) -> MaintenanceTask:
    [match] = [each for each in found.maintenance if each.task == name]
    return match


def gauges(found: Observation, queue: str = "q") -> QueueGauges:
    assert found.queues is not None
    [match] = [each for each in found.queues if each.queue == queue]
    return match


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another connection, of another thread, holds the write lock."""
    with closing(sqlite3.connect(path, check_same_thread=False)) as other:
        start(other.execute, "BEGIN IMMEDIATE").result()
        yield


@contextmanager
def broken(path: Path, table: str = "mqlite_messages") -> Iterator[None]:
    """A database of which a table cannot be read."""
    _rename(path, table, "hidden")
    try:
        yield
    finally:
        _rename(path, "hidden", table)


def _rename(path: Path, old: str, new: str) -> None:
    with closing(sqlite3.connect(path, timeout=10)) as connection:
        connection.execute("PRAGMA legacy_alter_table = ON")
        connection.execute(f"ALTER TABLE {old} RENAME TO {new}")

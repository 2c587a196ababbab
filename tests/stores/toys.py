"""Toy operations, so that these tests need nothing of the engine, and busy writers."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mqlite.engine.steps import Event, Insert, Operation, Ready, Statement, Steps
from mqlite.stores.sqlite import SqliteStore
from patience import PATIENCE_S, Running, start

INSERT_QUEUE = (
    "INSERT INTO mqlite_queues VALUES (?, ?, 'queue', 0, 30000, 10, 0, 1, 0, 'standard', 0, 0, 0, 0, "
    "0, 2.0, 0.0, 'deliveries', 0, 0, 'sequence', 0, 0, NULL)"
)
INTO_PAYLOADS = "INSERT INTO mqlite_payloads (body, properties) VALUES"
PAYLOAD = "(?, '')"
INSERT_PAYLOAD = f"{INTO_PAYLOADS} {PAYLOAD}"


def queue(id_: int = 1, name: str = "q") -> Operation[None]:
    def steps() -> Steps[None]:
        yield Statement(INSERT_QUEUE, (id_, name))

    return Operation("queue", steps)


def put(
    *bodies: bytes, size: int = 0, settles: bool = False, ready: int = 0
) -> Operation[list[int]]:
    """Stores bodies and answers their keys."""

    def steps() -> Steps[list[int]]:
        keys = yield Insert(INTO_PAYLOADS, PAYLOAD, [(body,) for body in bodies])
        if ready:
            yield Ready(ready, len(bodies))
        yield Event("put", 1, len(bodies))
        return keys

    return Operation("put", steps, size=size, settles=settles)


def failing(error: BaseException, *, after: bytes | None = None) -> Operation[None]:
    """Fails, after it has stored a body if one is given."""

    def steps() -> Steps[None]:
        if after is not None:
            yield Insert(INTO_PAYLOADS, PAYLOAD, [(after,)])
            yield Event("put", 1)
        raise error
        yield

    return Operation("failing", steps)


def bodies(*, reads: bool = True) -> Operation[list[bytes]]:
    def steps() -> Steps[list[bytes]]:
        rows = yield Statement("SELECT body FROM mqlite_payloads ORDER BY id")
        return [body for (body,) in rows]

    return Operation("bodies", steps, reads=reads)


class Gate:
    """An operation that holds the writer until it is opened."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()

    def operation(self) -> Operation[str]:
        def steps() -> Steps[str]:
            self.entered.set()
            assert self.opened.wait(PATIENCE_S)
            return "through"
            yield

        return Operation("gate", steps)


@contextmanager
def held(store: SqliteStore) -> Iterator[Gate]:
    """The writer, busy in another thread."""
    gate = Gate()
    with running(lambda: store.run(gate.operation())):
        assert gate.entered.wait(PATIENCE_S)
        try:
            yield gate
        finally:
            gate.opened.set()


@contextmanager
def running(call: Callable[[], Any]) -> Iterator[Running[Any]]:
    started = start(call)
    yield started
    started.result()


def foreign(path: Path) -> sqlite3.Connection:
    """Another program's connection to the file."""
    return sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)

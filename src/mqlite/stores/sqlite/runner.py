"""Drives an operation's steps over one connection.

It opens and ends no transaction: whoever calls it owns one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from typing import Any, Final, TypeVar

from mqlite.clock import Clock
from mqlite.engine import catalog
from mqlite.engine.catalog import Queue, Topic
from mqlite.engine.steps import (
    Changed,
    Due,
    Earliest,
    Effect,
    Event,
    Gone,
    Insert,
    Last,
    Many,
    Now,
    Operation,
    QueueById,
    Ready,
    Resolve,
    Row,
    Statement,
    Steps,
    Unrouted,
)
from mqlite.stores.deadlines import UNKNOWN
from mqlite.stores.names import Names

T = TypeVar("T")

_ROWS: Final = 64
"""Rows in one INSERT. Each statement gives up the interpreter's lock, and beside a busy
thread waits for it; one for 32 rows also costs a third less than 32. Sends gathered over
HTTP are at most 64: one statement, no savepoint (3 % of the broker's rate)."""


def know_nothing(kind: str) -> int:
    """The earliest work, for a connection that must look into the database."""
    return UNKNOWN


class Runner:
    """Runs operations on a cursor whose rows are plain tuples.

    `effects` gathers what they have to tell; the owner of the transaction publishes it
    after the commit.
    """

    def __init__(
        self,
        cursor: sqlite3.Cursor,
        clock: Clock,
        names: Names,
        earliest: Callable[[str], int] = know_nothing,
    ) -> None:
        self.effects: list[Effect] = []
        self.before_write: Callable[[], None] | None = None
        """Called once, before the first write that may not be the operation's only one."""
        self.wrote_only_once = False
        """Whether the operation has written without that call."""
        self._execute = cursor.execute
        self._executemany = cursor.executemany
        self._fetchall = cursor.fetchall
        self._cursor = cursor
        self._clock = clock
        self._names = names
        self._earliest = earliest
        emit = self.effects.append
        self._answers: dict[type, Callable[[Any], Any]] = {
            Statement: self._statement,
            tuple: self._statements,
            Many: self._many,
            Insert: self._insert,
            Last: self._last,
            Now: self._now,
            Resolve: self._resolve,
            QueueById: self._queue_by_id,
            Earliest: self._earliest_of,
            Due: emit,
            Ready: emit,
            Gone: emit,
            Event: emit,
            Unrouted: emit,
            Changed: self._changed,
        }

    def run(self, operation: Operation[T]) -> T:
        """The operation's result. Raises what it raises, and sqlite3.Error."""
        return self._drive(operation.start())

    def take_effects(self) -> list[Effect]:
        """The effects gathered so far, which are forgotten here."""
        taken = self.effects.copy()
        self.effects.clear()
        return taken

    def _drive(self, steps: Steps[T]) -> T:
        answers = self._answers
        answer: Any = None
        try:
            while True:
                step = steps.send(answer)
                answer = answers[step.__class__](step)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def _statement(self, step: Statement) -> list[Row]:
        if self.before_write is not None and not _only_reads(step.sql):
            self._announce_write()
        self._execute(step.sql, step.params)
        return self._fetchall()

    def _statements(self, step: tuple[Statement, ...]) -> list[list[Row]]:
        return [self._statement(statement) for statement in step]

    def _last(self, step: Last) -> list[Row] | list[int]:
        last = step.step
        if self.before_write is not None and (
            isinstance(last, Statement) or len(last.rows) <= _ROWS
        ):
            self.before_write = None
            self.wrote_only_once = True
        answer: list[Row] | list[int] = self._answers[last.__class__](last)
        return answer

    def _many(self, step: Many) -> None:
        if self.before_write is not None:
            self._announce_write()
        self._executemany(step.sql, step.rows)

    def _announce_write(self) -> None:
        announce, self.before_write = self.before_write, None
        if announce is not None:
            announce()

    def _insert(self, step: Insert) -> list[int]:
        if self.before_write is not None and step.rows:
            self._announce_write()
        if step.in_turn or len(step.rows) == 1:
            return [self._insert_rows(step, [row]) for row in step.rows]
        keys: list[int] = []
        for at in range(0, len(step.rows), _ROWS):
            rows = step.rows[at : at + _ROWS]
            last = self._insert_rows(step, rows)
            keys.extend(range(last - len(rows) + 1, last + 1))
        return keys

    def _insert_rows(self, step: Insert, rows: Sequence[Sequence[Any]]) -> int:
        """The last key. One statement takes the next keys in a row: nobody else writes."""
        sql = _insert_sql(step.into, step.values, len(rows))
        self._execute(sql, rows[0] if len(rows) == 1 else [*chain.from_iterable(rows)])
        return self._cursor.lastrowid or 0

    def _now(self, step: Now) -> int:
        return self._clock.now()

    def _resolve(self, step: Resolve) -> Queue | Topic | None:
        found = self._names.known(step.name)
        if found is None:
            found = self._drive(catalog.load(step.name))
            if found is not None:
                self._names.remember(found)
        return found

    def _queue_by_id(self, step: QueueById) -> Queue | None:
        found = self._names.known_queue(step.id)
        if found is None:
            found = self._drive(catalog.load_by_id(step.id))
            if found is not None:
                self._names.remember(found)
        return found

    def _earliest_of(self, step: Earliest) -> int:
        return self._earliest(step.kind)

    def _changed(self, step: Changed) -> None:
        self._names.changed(step.name)
        self.effects.append(step)


@cache
def _only_reads(sql: str) -> bool:
    return sql.lstrip().startswith(("SELECT", "PRAGMA"))


@cache
def _insert_sql(into: str, values: str, rows: int) -> str:
    return into + ", ".join([values] * rows)

"""Savepoints of the caller's own inside a transaction on the queue's connection."""

from __future__ import annotations

from typing import Final, TypeVar

from mqlite.engine.steps import (
    Due,
    Effect,
    Event,
    Gone,
    Last,
    Operation,
    Ready,
    Statement,
    Steps,
    Unrouted,
)
from mqlite.stores import effects

T = TypeVar("T")

INSERT: Final = "INSERT INTO mqlite_effects (effects) VALUES (?) RETURNING id"
SELECT: Final = "SELECT effects FROM mqlite_effects WHERE id = ?"
DELETE: Final = "DELETE FROM mqlite_effects WHERE id = ?"

_Told = Due | Ready | Gone | Event | Unrouted


class Savepoints:
    """Keeps what operations have to tell in the database, from the first savepoint on: so a
    rollback to one takes it along."""

    def __init__(self) -> None:
        self.seen = False
        self._rows: set[int] = set()

    def see(self, sql: str) -> None:
        """The caller is about to run this statement."""
        self.seen = self.seen or "savepoint" in sql.lower()

    def guard(self, operation: Operation[T]) -> Operation[T]:
        """The operation, writing down what it has to tell."""
        return Operation(operation.name, lambda: self._writing(operation.start()))

    def _writing(self, steps: Steps[T]) -> Steps[T]:
        told: list[Effect] = []
        answer = None
        try:
            while True:
                step = steps.send(answer)
                answer = None
                if isinstance(step, _Told):
                    told.append(step)
                else:
                    # It is not the last any more.
                    answer = yield (step.step if isinstance(step, Last) else step)
        except StopIteration as stop:
            result: T = stop.value
        if told:
            rows = yield Statement(INSERT, (effects.encode(told),))
            self._rows.add(rows[0][0])
        return result

    def tell(self) -> Operation[None]:
        """Before the commit: tell what is still true. An id may have been used again after
        a rollback; what stands there now is what counts."""
        return Operation("tell", self._telling)

    def _telling(self) -> Steps[None]:
        for id_ in sorted(self._rows):
            rows = yield Statement(SELECT, (id_,))
            for (text,) in rows:
                yield from effects.decode(text)
                yield Statement(DELETE, (id_,))

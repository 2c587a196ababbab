"""What a transaction has to tell once it is committed, and how it is told.

Effects of the writer's own transactions are published by whoever committed them. Those
of a transaction on another connection travel in the database, as text.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from mqlite.engine.steps import Changed, Due, Effect, Event, Gone, Ready, Unrouted
from mqlite.stores.deadlines import Deadlines
from mqlite.stores.waiters import Waiters

_KINDS: Final[dict[str, type[Effect]]] = {
    kind.__name__: kind for kind in (Changed, Due, Event, Gone, Ready, Unrouted)
}


def encode(effects: Iterable[Effect]) -> str:
    """The effects as a row of `mqlite_effects` carries them."""
    rows = [[type(effect).__name__, *effect] for effect in effects]
    return msgspec.json.encode(rows).decode()


def decode(text: str) -> list[Effect]:
    """The effects `encode` wrote. Raises ValueError for anything else."""
    try:
        return [_KINDS[name](*values) for name, *values in msgspec.json.decode(text)]
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a list of effects: {text[:200]!r}") from error


class Publisher:
    """Publishes committed effects. What a listener does wrong is logged: the transaction
    is committed, and its caller must hear so."""

    def __init__(self, waiters: Waiters, deadlines: Deadlines, logger: logging.Logger) -> None:
        self.listeners: list[Callable[[Sequence[Event]], None]] = []
        self._waiters = waiters
        self._deadlines = deadlines
        self._logger = logger

    def publish(self, effects: Sequence[Effect]) -> None:
        events: list[Event] = []
        ready: dict[int, int] = {}
        due: dict[str, int] = {}
        for effect in effects:
            if isinstance(effect, Event):
                events.append(effect)
            elif isinstance(effect, Ready):
                ready[effect.queue_id] = ready.get(effect.queue_id, 0) + effect.number
            elif isinstance(effect, Due):
                due[effect.kind] = min(effect.at, due.get(effect.kind, effect.at))
            elif isinstance(effect, Gone):
                self._waiters.gone(effect.queue_id)
            elif isinstance(effect, Unrouted):
                self._report(effect)
        for queue_id, count in ready.items():
            self._waiters.ready(queue_id, count)
        for kind, at in due.items():
            self._deadlines.note(kind, at)
        if events and self.listeners:
            self._tell(events)

    def _report(self, failure: Unrouted) -> None:
        fields = failure._asdict()
        self._logger.error(
            "a filter failed: subscription=%(subscription)r expr=%(expr)r error=%(error)r "
            "messages=%(number)d",
            fields,
            extra={name: fields[name] for name in ("subscription", "expr", "error")},
        )

    def _tell(self, events: Sequence[Event]) -> None:
        for listener in self.listeners:
            try:
                listener(events)
            except Exception:
                self._logger.exception("a listener for message events failed")

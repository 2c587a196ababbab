"""What a transaction has to tell once it is committed, and how it is told.

Effects of the writer's own transactions are published by whoever committed them. Those
of a transaction on another connection travel in the database, as text.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec.structs import asdict

from mqlite.engine.steps import Due, Effect, Event, Gone, Ready, Unrouted
from mqlite.observation.effects import EffectMeter
from mqlite.stores.deadlines import NEVER, Deadlines
from mqlite.stores.waiters import Waiters

_decoder: Final = msgspec.json.Decoder(list[Effect])


def encode(effects: Sequence[Effect]) -> str:
    """The effects as a row of `mqlite_effects` carries them."""
    return msgspec.json.encode(effects).decode()


def decode(text: str | bytes) -> list[Effect]:
    """The effects `encode` wrote. Raises ValueError for anything else."""
    try:
        return _decoder.decode(text)
    except RecursionError:
        raise ValueError("the effects are nested too deeply") from None


class Publisher:
    """Publishes committed effects. What a listener does wrong is logged: the transaction
    is committed, and its caller must hear so."""

    def __init__(
        self, waiters: Waiters, deadlines: Deadlines, meter: EffectMeter, logger: logging.Logger
    ) -> None:
        self.listeners: list[Callable[[Sequence[Event]], None]] = []
        self._waiters = waiters
        self._deadlines = deadlines
        self._meter = meter
        self._logger = logger

    def publish(self, effects: Sequence[Effect]) -> None:
        events: list[Event] = []
        ready: dict[int, int] = {}
        due: dict[str, int] = {}
        for effect in effects:
            if isinstance(effect, Event):
                self._meter.count(effect)
                events.append(effect)
            elif isinstance(effect, Ready):
                ready[effect.queue_id] = ready.get(effect.queue_id, 0) + effect.number
            elif isinstance(effect, Due):
                if effect.at < due.get(effect.kind, NEVER):
                    due[effect.kind] = effect.at
            elif isinstance(effect, Gone):
                self._waiters.gone(effect.queue_id)
                self._meter.gone(effect.queue_id, effect.name)
            elif isinstance(effect, Unrouted):
                self._report(effect)
        for queue_id, count in ready.items():
            self._waiters.ready(queue_id, count)
        for kind, at in due.items():
            self._deadlines.note(kind, at)
        if events and self.listeners:
            self._tell(events)

    def _report(self, failure: Unrouted) -> None:
        fields = asdict(failure)
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

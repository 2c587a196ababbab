"""What happened to messages, counted once it is committed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final, Protocol

from mqlite.observation.schema import FilterFailures, MessageEvents
from mqlite.observation.vocabulary import EVENTS, FILTER_EVENTS, FILTER_STAGES, FilterStage

MAX_GONE: Final = 1_000
"""At most so many names that no queue has any more keep their counts. A program may make and
delete queues for ever."""

_FORGOTTEN: Final = 100
"""So many are forgotten at once: to tell which may be goes through the names of all queues."""

_Cell = dict[str, int]


class Effect(Protocol):
    """`number` messages of a queue had an `event`."""

    @property
    def event(self) -> str: ...
    @property
    def queue_id(self) -> int: ...
    @property
    def number(self) -> int: ...


class EffectMeter:
    """Counts committed effects by queue. The holder of the writer's turn counts; any thread
    reads."""

    def __init__(self, name_of: Callable[[int], str | None]) -> None:
        """`name_of` tells the name of a queue if that takes no look into the database."""
        self._name_of = name_of
        self._moving = threading.Lock()
        """Held while counts change places: a look must find them in one, not in both."""
        self._cells: dict[int, _Cell] = {}
        self._names: dict[int, str] = {}
        self._unnamed: set[int] = set()
        """Queues with counts whose name nobody has told."""
        self._live: Mapping[int, str] = {}
        """The live queues of the latest look."""
        self._gone: dict[str, _Cell] = {}
        self._most = MAX_GONE
        """With more than so many, some are forgotten."""
        self._left: dict[int, str] = {}
        """Names of deleted queues. A commit of another process may be noticed after the deletion
        that followed it."""
        self._unrouted: dict[FilterStage, int] = dict.fromkeys(FILTER_STAGES, 0)

    def count(self, effect: Effect) -> None:
        try:
            self._cells[effect.queue_id][effect.event] += effect.number
        except KeyError:
            self._count_first(effect)

    def gone(self, queue_id: int, name: str) -> None:
        """The queue is deleted; what happened in it stays counted, under its name."""
        with self._moving:
            self._names.pop(queue_id, None)
            self._unnamed.discard(queue_id)
            self._left[queue_id] = name
            if len(self._left) > MAX_GONE:
                del self._left[next(iter(self._left))]
            cell = self._cells.pop(queue_id, None)
            if cell is not None:
                self._keep(name, cell)

    def snapshot(self, live: Mapping[int, str]) -> list[MessageEvents]:
        """The counts, those of the `live` queues (names by id) complete from zero on."""
        found: dict[str, _Cell] = {}
        with self._moving:
            self._live = live
            # Kept: a look that began before this one may end after it, and know of fewer queues.
            told = self._unnamed & live.keys()
            self._names |= {queue_id: live[queue_id] for queue_id in told}
            self._unnamed -= told
            # Copied, not gone through: with thousands of queues the writer would wait for that.
            cells, names, gone = self._cells.copy(), self._names.copy(), self._gone.copy()
        for queue_id, name in {**live, **names}.items():
            _add(found, name, cells.get(queue_id, {}))
        for name, cell in gone.items():
            _add(found, name, cell)
        return [
            MessageEvents(queue=name, event=event, count=count)
            for name, cell in sorted(found.items())
            for event, count in cell.items()
        ]

    def filter_failures(self) -> list[FilterFailures]:
        """Messages that filters kept from their subscriptions by failing."""
        return [FilterFailures(stage=stage, count=n) for stage, n in self._unrouted.items()]

    def _count_first(self, effect: Effect) -> None:
        """Count the first effect in a queue, and what is no message's."""
        stage = FILTER_EVENTS.get(effect.event)
        if stage is not None:
            self._unrouted[stage] += effect.number
        elif effect.event in EVENTS:
            self._count_event(effect)

    def _count_event(self, effect: Effect) -> None:
        cell = dict.fromkeys(EVENTS, 0) | {effect.event: effect.number}
        with self._moving:
            left = self._left.get(effect.queue_id)
            if left is not None:
                self._keep(left, cell)
                return
            name = self._name_of(effect.queue_id)
            if name is None:
                self._unnamed.add(effect.queue_id)
            else:
                self._names[effect.queue_id] = name
            self._cells[effect.queue_id] = cell

    def _keep(self, name: str, cell: _Cell) -> None:
        """Add to the counts of deleted queues; the oldest are forgotten, but not those that a
        queue made again goes on from."""
        kept = self._gone.pop(name, dict.fromkeys(EVENTS, 0))
        self._gone[name] = {event: kept[event] + number for event, number in cell.items()}
        if len(self._gone) > self._most:
            used = {*self._names.values(), *self._live.values()}
            unused = (name for name in self._gone if name not in used)
            for oldest in list(islice(unused, len(self._gone) - MAX_GONE + _FORGOTTEN)):
                del self._gone[oldest]
            self._most = max(MAX_GONE, len(self._gone) + _FORGOTTEN)


def _add(found: dict[str, _Cell], name: str, cell: _Cell) -> None:
    total = found.setdefault(name, dict.fromkeys(EVENTS, 0))
    for event, number in cell.copy().items():
        total[event] += number

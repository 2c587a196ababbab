"""What every action of the machine needs: both queues, and what was done before."""

from __future__ import annotations

from typing import Any

from hypothesis.stateful import RuleBasedStateMachine

import mqlite
from mqlite.model import Lease

from .beside import Beside

Held = tuple[str, int, str]
"""A queue, a sequence number and the token that holds it, or held it once."""
Call = tuple[str, str, int, str, tuple[Any, ...]]
"""A settlement: verb, queue, sequence number, token, arguments."""


class Acting(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.beside: Beside | None = None
        self.favourite = ""
        self.leases: list[Held] = []
        self.batches: list[tuple[str, str, list[Lease]]] = []
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.settled: list[Call] = []
        self.calls = 0

    @property
    def mq(self) -> mqlite.Embedded:
        assert self.beside is not None
        return self.beside.mq

    @property
    def world(self) -> Any:
        assert self.beside is not None
        return self.beside.world

    def both(self, real: Any, model: Any, *, wakes_exactly: bool = True) -> Any:
        assert self.beside is not None
        self.calls += 1
        return self.beside.call(real, model, wakes_exactly=wakes_exactly)

    def lease(self, pick: int, twist: str = "none") -> Held:
        """One of the leases there ever were, perhaps spoilt."""
        name, seq, token = self.leases[-1 - pick % len(self.leases)]
        match twist:
            case "token":
                token = "0" * 32
            case "blank":
                token = ""
            case "seq":
                seq += 1
            case "queue":
                name = "b" if name == "a" else "a"
        return name, seq, token

    def seq(self, name: str, state: str, pick: int) -> int:
        """The number of a message in this state if there is one, now and then of another."""
        queue = self.world.queues.get(name)
        found = [row.seq for row in queue.of(state)] if queue else []
        found += [self.world.last_seq, self.world.last_seq + 1]
        return found[pick % len(found)]

    def held(self, pick: int) -> Held:
        found = [
            (name, row.seq, row.token)
            for name, queue in self.world.queues.items()
            for row in queue.of("locked")
        ]
        return found[pick % len(found)] if found else self.lease(pick)

"""The state machine: random calls to the queue, wrong ones among them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

import mqlite

from . import claiming, naming, strategies as draw, sweeping
from .beside import Beside, fields, received
from .settlement import Settlement
from .strategies import milliseconds
from .traffic import Traffic


class QueueMachine(Traffic, Settlement):
    last: QueueMachine
    """The machine that was started last."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[str, dict[str, Any]]] = []
        QueueMachine.last = self

    @initialize(
        on_disk=st.booleans(),
        a=draw.settings,
        b=draw.settings,
        topic=st.booleans(),
        favourite=draw.verbs,
    )
    def begin(self, **arguments: Any) -> None:
        self.act("open", arguments)

    def open(
        self, on_disk: bool, a: dict[str, Any], b: dict[str, Any], topic: bool, favourite: str
    ) -> None:
        self.favourite = favourite
        self.beside = Beside(on_disk=on_disk)
        self.configure("a", "queue", a)
        self.configure("b", "queue", b)
        if topic:
            self.subscribe("t", "s1")
            self.subscribe("t", "s2")
            self.configure("s2", "subscription", {"dedup_window_ms": 10_000})

    def teardown(self) -> None:
        if self.beside is not None:
            self.beside.close()

    @rule(action=st.sampled_from(draw.ACTIONS), data=st.data())
    def step(self, action: str, data: st.DataObject) -> None:
        """One rule for all, so that their weights are ours: hypothesis leaves out half of the
        rules in each run."""
        self.act(action, data.draw(st.fixed_dictionaries(draw.ARGUMENTS[action])))

    def act(self, action: str, arguments: dict[str, Any]) -> None:
        self.steps.append((action, arguments))
        if self.leases or action not in draw.NEED_LEASES:
            getattr(self, action)(**arguments)

    @invariant()
    def same(self) -> None:
        if self.beside is not None and self.calls:
            self.beside.check()
            self.calls = 0

    def rest(self) -> None:
        """Nothing happens."""

    # Queues

    def configure(self, name: str, kind: str, drawn: dict[str, Any]) -> None:
        self.both(
            lambda: self.mq.create_queue(name, kind=kind, **draw.as_arguments(drawn)),
            lambda _: naming.create_queue(self.world, name, kind, drawn),
            wakes_exactly=False,
        )

    def reorder(self, mode: str) -> None:
        """Only the ordering mode of the busiest queue, all else as it is."""
        if "a" in self.world.queues and self.world.queues["a"].kind == "queue":
            self.configure("a", "queue", {**self.world.queues["a"].settings, "ordering_mode": mode})

    def subscribe(self, topic: str, name: str) -> None:
        self.both(
            lambda: self.mq.subscribe(topic, name),
            lambda _: naming.subscribe(self.world, topic, name),
        )

    def rename(self, action: str, topic: str, name: str, generation: str | None) -> None:
        if action == "subscribe":
            self.subscribe(topic, name)
        elif action == "unsubscribe":
            self.both(
                lambda: self.mq.unsubscribe(topic, name, generation=generation),
                lambda _: naming.unsubscribe(self.world, topic, name, generation),
            )
        else:
            self.both(
                lambda: self.mq.delete_queue(name, generation=generation),
                lambda _: naming.delete_queue(self.world, name, generation),
            )

    def pause(self, name: str, paused: bool) -> None:
        self.both(
            lambda: self.mq.pause_queue(name) if paused else self.mq.resume_queue(name),
            lambda _: naming.set_paused(self.world, name, paused),
            wakes_exactly=paused,
        )
        if not paused and name in self.world.queues:
            queue = self.world.queue(name)
            assert self.beside.woken[queue.id] == len(claiming.ready(queue))

    # Time, maintenance, dead letters, crashes

    def time_passes(self, ms: int) -> None:
        self.beside.set_time(self.world.now + ms)
        self.calls += 1

    def a_moment_comes(self, pick: int, offset: int) -> None:
        """The time at which something is due, or a millisecond beside it."""
        moments = self.world.moments()
        if moments:
            self.beside.set_time(moments[pick % len(moments)] + offset)
            self.calls += 1

    def maintain(self, ms: int) -> None:
        self.beside.set_time(self.world.now + ms)
        self.both(
            lambda: self.mq.maintain(),
            lambda _: sweeping.maintain(self.world),
            wakes_exactly=False,
        )

    def _when_old(self, name: str, age: int, offset: int | None) -> None:
        """The time at which a dead letter reaches the age."""
        dead = self.world.queues[name].of("dead_lettered") if name in self.world.queues else []
        if dead and offset is not None:
            self.beside.set_time(dead[-1].enqueued_at + age + offset)

    def redrive(self, name: str, into: str, limit: int, age: int, offset: int | None) -> None:
        self._when_old(name, age, offset)
        self.both(
            lambda: self.mq.redrive(
                name, target=into, max_messages=limit, older_than=milliseconds(age)
            ),
            lambda _: mqlite.MoveResult(sweeping.redrive(self.world, name, into, limit, age)),
        )

    def purge(self, name: str, limit: int, age: int, offset: int | None) -> None:
        self._when_old(name, age, offset)
        self.both(
            lambda: self.mq.purge(name, max_messages=limit, older_than=milliseconds(age)),
            lambda _: mqlite.MoveResult(sweeping.purge(self.world, name, limit, age)),
        )

    def peek(self, name: str, pick: int, state: Any, limit: int) -> None:
        seq = self.seq(name, state or "active", pick)
        self.both(
            lambda: [
                fields(m) for m in self.mq.peek(name, from_seq=seq, state=state, max_messages=limit)
            ],
            lambda _: received(naming.peek(self.world, name, seq, state, limit), 2**62),
        )

    def restart(self, crash: bool) -> None:
        if self.beside.folder and crash:
            self.beside.crash()
        elif self.beside.folder:
            self.beside.reopen()
        self.calls += 1

"""The state machine: random calls to the queue, wrong ones among them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import mqlite
from mqlite.api import Lease
from mqlite.engine import receive as engine_receive

from . import claiming, naming, sending, settling, strategies as draw, sweeping
from .beside import Beside, fields, received
from .strategies import milliseconds

Call = tuple[str, str, int, str, tuple[Any, ...]]
"""A settlement: verb, queue, sequence number, token, arguments."""


class QueueMachine(RuleBasedStateMachine):
    last: QueueMachine
    """The machine that was started last."""

    def __init__(self) -> None:
        super().__init__()
        self.beside: Beside | None = None
        self.leases: list[tuple[str, int, str]] = []
        self.settled: list[Call] = []
        self.calls = 0
        self.steps: list[tuple[str, dict[str, Any]]] = []
        QueueMachine.last = self

    @initialize(on_disk=st.booleans(), a=draw.settings, b=draw.settings, topic=st.booleans())
    def begin(self, **arguments: Any) -> None:
        self.act("open", arguments)

    def open(self, on_disk: bool, a: dict[str, Any], b: dict[str, Any], topic: bool) -> None:
        self.beside = Beside(on_disk=on_disk)
        self.configure("a", "queue", a)
        self.configure("b", "queue", b)
        if topic:
            self.subscribe("t", "s1")
            self.subscribe("t", "s2")

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

    # Shorthands

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

    def lease(self, pick: int, twist: str = "none") -> tuple[str, int, str]:
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

    # Sending

    def send(self, to: str, draft: dict[str, Any], at: int | None, ttl: int | None) -> None:
        arguments = {**draft}
        arguments["group_id"] = arguments.pop("group")
        self.both(
            lambda: self.mq.send(to, at=_time(at), ttl=_time(ttl), **arguments),
            lambda _: sending.send(self.world, to, [draft], self.at(at), ttl or 0)[0],
        )

    def send_batch(
        self, to: str, drafts: list[dict[str, Any]], at: int | None, ttl: int | None
    ) -> None:
        messages = [
            mqlite.OutMessage(
                group_id=draft["group"], **{k: draft[k] for k in draft if k != "group"}
            )
            for draft in drafts
        ]
        self.both(
            lambda: self.mq.send_batch(to, messages, at=_time(at), ttl=_time(ttl)),
            lambda _: sending.send(self.world, to, drafts, self.at(at), ttl or 0),
        )

    def fill(self, lines: list[tuple[str, int, int]], ms: int) -> None:
        """Messages that the busiest queue takes, none like another, a moment later."""
        self.beside.set_time(self.world.now + ms)
        queue = self.world.queues.get("a")
        grouped = queue is not None and queue.ordering_mode == "group_fifo"
        drafts = [
            {
                "body": f"{self.world.last_seq} {i}".encode().ljust(size),
                "group": group or ("g" if grouped else ""),
                "priority": priority,
            }
            for i, (group, priority, size) in enumerate(lines)
        ]
        self.send_batch("a", drafts, None, None)

    def at(self, ms: int | None) -> int:
        return 0 if ms is None else self.world.now + ms

    def cancel(self, name: str, pick: int) -> None:
        seq = self.seq(name, "scheduled", pick)
        self.both(
            lambda: self.mq.cancel(name, seq), lambda _: sending.cancel(self.world, name, seq)
        )

    # Receiving

    def receive(self, name: str, limit: int, mode: str, attempt: str) -> None:
        self._receive(
            lambda: self.mq.receive(name, max_messages=limit, mode=mode, attempt_id=attempt),
            (name, limit, mode, attempt, 0),
        )

    def receive_for_a_while(self, limit: int, lease: int) -> None:
        self._receive(
            lambda: self.mq.core.run(engine_receive.claim("a", limit, lease_ms=lease)),
            ("a", limit, "peek_lock", "", lease),
        )

    def _receive(self, real: Any, arguments: tuple[str, int, str, str, int]) -> None:
        name = arguments[0]
        answer = self.both(
            lambda: list(map(fields, real())),
            lambda answer: received(
                claiming.claim(self.world, *arguments, tokens=_tokens(answer)), self.world.now
            ),
            wakes_exactly=False,
        )
        self._remember(name, answer)

    def receive_deferred(self, name: str, some: list[int]) -> None:
        seqs = [self.seq(name, "deferred", pick) for pick in some]
        answer = self.both(
            lambda: list(map(fields, self.mq.receive_deferred(name, seqs))),
            lambda answer: received(
                claiming.receive_deferred(self.world, name, seqs, _tokens(answer)), self.world.now
            ),
        )
        self._remember(name, answer)

    def _remember(self, name: str, answer: list[dict[str, Any]] | None) -> None:
        for message in answer or []:
            if "lock_token" in message:
                self.leases.append((name, message["seq_number"], message["lock_token"]))

    def consume(self, limit: int, mode: str) -> None:
        self.receive("a", limit, mode, "")

    def fetch(self, some: list[int]) -> None:
        self.receive_deferred("a", some)

    def release(self, name: str, some: list[int], attempt: str) -> None:
        leases = self._leases(some, [])
        self.both(
            lambda: self.mq.core.run(engine_receive.release(name, leases, attempt)),
            lambda _: claiming.release(self.world, name, leases, attempt),
        )

    # Settling

    def settle(
        self, verb: str, pick: int, twist: str, delay: int, reason: str, description: str
    ) -> None:
        arguments = {"abandon": (delay,), "reject": (reason, description)}.get(verb, ())
        self._settle((verb, *self.lease(pick, twist), arguments))

    def work(self, verb: str, pick: int, delay: int) -> None:
        """Settle a message that is held, if one is."""
        held = [
            (name, row.seq, row.token)
            for name, queue in self.world.queues.items()
            for row in queue.of("locked")
        ]
        lease = held[pick % len(held)] if held else self.lease(pick)
        arguments = {"abandon": (delay,), "reject": ("", "")}.get(verb, ())
        self._settle((verb, *lease, arguments))

    def settle_again(self, pick: int, change: str | None) -> None:
        if not self.settled:
            return
        verb, name, seq, token, arguments = self.settled[-1 - pick % len(self.settled)]
        if change == "verb":
            verb, arguments = ("defer", ()) if verb == "complete" else ("complete", ())
        elif change == "arguments" and verb == "abandon":
            arguments = (arguments[0] + 1,)
        elif change == "arguments" and verb == "reject":
            arguments = (arguments[0] + arguments[1], "")
        elif change == "seq":
            seq += 1
        self._settle((verb, name, seq, token, arguments))

    def _settle(self, call: Call) -> None:
        verb, name, seq, token, arguments = call
        if verb == "abandon":
            options = {"delay": milliseconds(arguments[0])}
        elif verb == "reject":
            options = dict(zip(("reason", "description"), arguments, strict=True))
        else:
            options = {}
        self.both(
            lambda: getattr(self.mq, verb)(name, seq, token, **options),
            lambda _: getattr(settling, verb)(self.world, name, seq, token, *arguments),
        )
        self.settled.append(call)

    def complete_batch(self, name: str, some: list[int], spoilt: list[str]) -> None:
        leases = self._leases(some, spoilt)
        self.both(
            lambda: [(r.seq_number, r.ok) for r in self.mq.complete_batch(name, leases)],
            lambda _: settling.complete_batch(self.world, name, leases),
        )
        self.settled += [("complete", name, *lease, ()) for lease in leases]

    def renew_batch(self, name: str, some: list[int], spoilt: list[str]) -> None:
        leases = self._leases(some, spoilt)
        self.both(
            lambda: list(map(_renewal, self.mq.renew_batch(name, leases))),
            lambda _: settling.renew_batch(self.world, name, leases),
        )

    def _leases(self, some: list[int], spoilt: list[str]) -> list[Lease]:
        """Leases of any queue, each perhaps several times, some spoilt."""
        twists = spoilt + ["none"] * len(some)
        return [self.lease(pick, twist)[1:] for pick, twist in zip(some, twists, strict=False)]

    def renew(self, pick: int, twist: str) -> None:
        lease = self.lease(pick, twist)
        self.both(
            lambda: _renewal(self.mq.renew(*lease)), lambda _: settling.renew(self.world, *lease)
        )

    # Time, maintenance, dead letters, crashes

    def time_passes(self, ms: int) -> None:
        self.beside.set_time(self.world.now + ms)
        self.calls += 1

    def maintain(self, ms: int) -> None:
        self.beside.set_time(self.world.now + ms)
        self.both(
            lambda: self.mq.maintain(),
            lambda _: sweeping.maintain(self.world),
            wakes_exactly=False,
        )

    def redrive(self, name: str, into: str, limit: int, age: int) -> None:
        self.both(
            lambda: self.mq.redrive(
                name, target=into, max_messages=limit, older_than=milliseconds(age)
            ),
            lambda _: mqlite.MoveResult(sweeping.redrive(self.world, name, into, limit, age)),
        )

    def purge(self, name: str, limit: int, age: int) -> None:
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


def _time(ms: int | None) -> Any:
    return None if ms is None else milliseconds(ms)


def _tokens(answer: Any) -> list[str]:
    return [m.get("lock_token", "") for m in answer] if isinstance(answer, list) else []


def _renewal(result: mqlite.RenewResult) -> tuple[int, bool, int, int]:
    return result.seq_number, result.ok, result.locked_until_ms, result.lease_ms

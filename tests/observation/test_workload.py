"""Totals are what a random workload did, by what its answers and a look at the queue said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

import mqlite
from mqlite import OutMessage
from mqlite.clock import ManualClock
from mqlite.model import STATES
from observation.looks import events, gauges

SECOND = 1000
LOCK = 10 * SECOND
QUEUES = ("plain", "dedup", "group", "discard")


class Workload:
    """Does things to four queues, and counts what they must have had for effects."""

    def __init__(self, mq: mqlite.Embedded, clock: ManualClock) -> None:
        self.mq = mq
        self.clock = clock
        self.expected: Counter[tuple[str, str]] = Counter()
        self.made = 0
        self.held: dict[str, list[mqlite.Message]] = {name: [] for name in QUEUES}
        common: Any = {"lock_duration": "10s", "max_delivery_count": 3}
        mq.create_queue("plain", **common)
        mq.create_queue("dedup", dedup_window="1h", **common)
        mq.create_queue("group", ordering_mode="group_fifo", dlq_max_count=2, **common)
        mq.create_queue("discard", dead_letter_on_expire=False, **common)

    def count(self, queue: str, event: str, number: int = 1) -> None:
        self.expected[queue, event] += number

    def send(self, queue: str, number: int) -> None:
        self.mq.send_batch(queue, [self._message(queue) for _ in range(number)])
        self.count(queue, "enqueued", number)

    def send_short_lived(self, queue: str, number: int) -> None:
        self.mq.send_batch(queue, [self._message(queue)], ttl=number)
        self.count(queue, "enqueued")

    def send_again(self, queue: str, number: int) -> None:
        """The same identifier twice, with the same body and with another."""
        if queue != "dedup":
            return
        identifier = self._message(queue).message_id
        bodies = [b"a", b"a", b"b"][: number + 1]
        self.mq.send_batch(queue, [OutMessage(body=b, message_id=identifier) for b in bodies])
        self.count(queue, "enqueued")
        self.count(queue, "deduplicated", bodies.count(b"a") - 1)
        self.count(queue, "dedup_conflict", bodies.count(b"b"))

    def schedule(self, queue: str, number: int) -> None:
        due = self.clock.now() + number * SECOND
        self.mq.send_batch(queue, [self._message(queue)], at=_at(due))
        self.count(queue, "enqueued")
        self.count(queue, "scheduled")

    def cancel(self, queue: str, number: int) -> None:
        found = self.mq.peek(queue, state="scheduled", max_messages=1000)
        for message in [each for each in found if not each.delivery_count][:number]:
            self.mq.cancel(queue, message.seq_number)
            self.count(queue, "canceled")

    def receive(self, queue: str, number: int) -> None:
        self._expired_are_retired(queue)
        messages = self.mq.receive(queue, max_messages=number)
        self.held[queue] += messages
        self._delivered(queue, messages)

    def receive_and_delete(self, queue: str, number: int) -> None:
        self._expired_are_retired(queue)
        messages = self.mq.receive(queue, max_messages=number, mode="receive_and_delete")
        self._delivered(queue, messages)
        self.count(queue, "receive_deleted", len(messages))

    def receive_deferred(self, queue: str, number: int) -> None:
        found = self.mq.peek(queue, state="deferred", max_messages=number)
        messages = self.mq.receive_deferred(queue, [each.seq_number for each in found])
        self.held[queue] += messages
        self._delivered(queue, messages)

    def complete(self, queue: str, number: int) -> None:
        for message in self._some_held(queue, number):
            for _ in range(2):  # the second is a replay
                message.complete()
            self.count(queue, "completed")

    def complete_batch(self, queue: str, number: int) -> None:
        messages = self._some_held(queue, number)
        for _ in range(2):
            self.mq.complete_batch(queue, messages)
        self.count(queue, "completed", len(messages))

    def abandon(self, queue: str, number: int) -> None:
        for message in self._some_held(queue, number):
            message.abandon(delay=number * SECOND if number % 2 else 0)
            self.count(queue, "abandoned")
            self.count(queue, "dead_lettered", message.delivery_count >= 3)

    def snooze(self, queue: str, number: int) -> None:
        for message in self._some_held(queue, number):
            message.abandon(snooze=True)
            self.count(queue, "snoozed")
            self.count(queue, "dead_lettered", message.delivery_count >= 3)

    def release(self, queue: str, number: int) -> None:
        for message in self._some_held(queue, number):
            message.release()
            self.count(queue, "released")

    def reject(self, queue: str, number: int) -> None:
        for message in self._some_held(queue, number):
            message.reject()
            self.count(queue, "rejected")
            self.count(queue, "dead_lettered")

    def defer(self, queue: str, number: int) -> None:
        for message in self._some_held(queue, number):
            message.defer()
            self.count(queue, "deferred")

    def redrive(self, queue: str, number: int) -> None:
        self.count(queue, "redriven", self.mq.redrive(queue, max_messages=number).count)

    def purge(self, queue: str, number: int) -> None:
        self.count(queue, "purged", self.mq.purge(queue, max_messages=number).count)

    def roll_back(self, queue: str, number: int) -> None:
        with suppress(KeyError), self.mq.transaction() as tx:
            tx.send_batch(queue, [self._message(queue) for _ in range(number)])
            raise KeyError(queue)

    def wait(self, queue: str, number: int) -> None:
        """Time passes and every sweep runs, in its order: leases, schedules, lifetimes, and
        the bounds of the dead letters."""
        now = self.clock.advance(number * SECOND)
        for name in QUEUES:
            messages = self.mq.peek(name, max_messages=1000)
            failed = [
                each for each in messages if each.state == "locked" and each.locked_until_ms <= now
            ]
            due = [
                each for each in messages if each.state == "scheduled" and each.visible_at_ms <= now
            ]
            dead = {each.seq_number for each in messages if each.state == "dead_lettered"}
            too_often = {each.seq_number for each in failed if each.delivery_count >= 3}
            expired = {
                each.seq_number
                for each in messages
                if 0 < each.expires_at_ms <= now and each.seq_number not in dead | too_often
            }
            self.count(name, "lock_expired", len(failed))
            self.count(name, "activated", len(due))
            self.count(name, "dead_lettered", len(too_often))
            self._retired(name, expired)
            if name == "group":
                total = len(dead | too_often | expired)
                self.count(name, "retention_deleted", max(total - 2, 0))
            self.held[name] = [each for each in self.held[name] if each.locked_until_ms > now]
        self.mq.maintain()

    def _message(self, queue: str) -> OutMessage:
        self.made += 1
        group = "g" if queue == "group" else ""
        return OutMessage(body=b"x", message_id=str(self.made), group_id=group)

    def _delivered(self, queue: str, messages: list[mqlite.Message]) -> None:
        self.count(queue, "delivered", len(messages))
        self.count(queue, "redelivered", sum(each.delivery_count > 1 for each in messages))

    def _expired_are_retired(self, queue: str) -> None:
        """A claim takes out the active messages whose time is over."""
        now = self.clock.now()
        active = self.mq.peek(queue, state="active", max_messages=1000)
        self._retired(queue, {m.seq_number for m in active if 0 < m.expires_at_ms <= now})

    def _retired(self, queue: str, seqs: set[int]) -> None:
        event = "ttl_discarded" if queue == "discard" else "dead_lettered"
        self.count(queue, event, len(seqs))

    def _some_held(self, queue: str, number: int) -> list[mqlite.Message]:
        """Messages whose lease is alive: their time to live may be over before a sweep."""
        locked = {
            each.seq_number for each in self.mq.peek(queue, state="locked", max_messages=1000)
        }
        held = [each for each in self.held[queue] if each.seq_number in locked]
        taken, self.held[queue] = held[:number], held[number:]
        return taken


ACTIONS: list[Callable[[Workload, str, int], None]] = [
    action
    for name, action in vars(Workload).items()
    if not name.startswith("_") and name != "count"
]
STEPS = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.sampled_from(QUEUES), st.integers(1, 4)),
    min_size=5,
    max_size=40,
)


@settings(max_examples=80, deadline=None)
@given(STEPS)
def test_totals_are_what_was_done(steps: list[tuple[Any, str, int]]) -> None:
    clock = ManualClock()
    with mqlite.open(":memory:", clock=clock) as mq:
        work = Workload(mq, clock)
        for queue in QUEUES:
            work.send(queue, 9)
            work.receive(queue, 5)
        for action, queue, number in [*steps, (Workload.wait, "plain", 20)]:
            action(work, queue, number)
        found = mq.observe()
        for queue in QUEUES:
            wanted = {event: n for (name, event), n in work.expected.items() if name == queue and n}
            assert events(found, queue) == wanted
            _gauges_are_what_is_there(mq, queue, found, clock.now())
            _nothing_is_lost(events(found, queue), gauges(found, queue).retained)


def _gauges_are_what_is_there(mq: mqlite.Embedded, queue: str, found: Any, now: int) -> None:
    stored = Counter(each.state for each in mq.peek(queue, max_messages=1000))
    shown = gauges(found, queue)
    assert {state: getattr(shown, state) for state in STATES} == {s: stored[s] for s in STATES}
    assert (shown.retained, shown.unexpected) == (stored.total(), 0)
    stats = mq.stats(queue)
    assert shown.oldest_message_age_seconds * 1000 == stats.oldest_message_age_ms


def _nothing_is_lost(happened: dict[str, int], retained: int) -> None:
    gone = (
        "completed",
        "receive_deleted",
        "ttl_discarded",
        "retention_deleted",
        "purged",
        "canceled",
    )
    assert happened.get("enqueued", 0) == retained + sum(happened.get(each, 0) for each in gone)


def _at(ms: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)

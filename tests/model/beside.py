"""The queue and its model, side by side: every call goes to both, every answer is compared."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

import mqlite
from mqlite.clock import ManualClock
from mqlite.engine import doctor
from mqlite.engine.steps import Statement, Steps, operation
from mqlite.model import MessageData

from . import naming, sweeping
from .claiming import ready
from .strategies import ANSWER_BYTES, MAX_BYTES
from .world import Refused, World

INHERITED_COUNT = 6
START_MS = 1_700_000_000_000

Ready = dict[int, set[int]]
"""Which messages of each queue nothing holds up."""


class Beside:
    """A queue in memory or in a file, and its model."""

    def __init__(self, *, on_disk: bool) -> None:
        self.clock = ManualClock(START_MS)
        self.world = World(
            START_MS, MAX_BYTES, ANSWER_BYTES, inherited={"dlq_max_count": INHERITED_COUNT}
        )
        self.folder = Path(tempfile.mkdtemp(prefix="mqlite-model-")) if on_disk else None
        self.generation = 0
        if self.folder:
            self._path(0).parent.mkdir()
        self._open()

    def _open(self) -> None:
        self.mq = mqlite.open(
            str(self._path(self.generation)) if self.folder else ":memory:",
            clock=self.clock,
            max_message_bytes=MAX_BYTES,
            dlq_max_count=INHERITED_COUNT,
        )
        self.woken: Counter[int] = Counter()
        self.mq.core.store.waiters.ready = self._wake

    def _path(self, generation: int) -> Path:
        assert self.folder is not None
        return self.folder / str(generation) / "queue.db"

    def _wake(self, queue_id: int, messages: int) -> None:
        self.woken[queue_id] += messages

    def close(self) -> None:
        self.mq.close()
        if self.folder:
            shutil.rmtree(self.folder)

    def reopen(self) -> None:
        self.mq.close()
        self._open()
        sweeping.recover(self.world)

    def crash(self) -> None:
        """Go on with the files as they are at this moment, without a close."""
        before, after = self._path(self.generation), self._path(self.generation + 1)
        shutil.copytree(before.parent, after.parent)
        self.mq.close()
        shutil.rmtree(before.parent)
        self.generation += 1
        self._open()
        sweeping.recover(self.world)

    def set_time(self, now: int) -> None:
        self.clock.set(now)
        self.world.now = now

    def call(
        self,
        real: Callable[[], Any],
        model: Callable[[Any], Any],
        *,
        wakes_exactly: bool = True,
    ) -> Any:
        """Make the call on both; the model may look at the real answer to learn tokens.

        Receivers are woken for as many messages as became ready; an operation of several
        steps may wake for ones that are not ready any more at its end.
        """
        before = self._ready()
        self.woken.clear()
        refused, answer = _outcome(real, mqlite.MqliteError)
        should_refuse, expected = _outcome(lambda: model(answer), Refused)
        assert refused == should_refuse, f"{answer!r} instead of {expected!r}"
        if refused:
            assert not self.woken, "a refused call has woken receivers"
            return None
        assert answer == expected
        self._check_wakes(before, wakes_exactly)
        return answer

    def _ready(self) -> Ready:
        return {queue.id: ready(queue) for queue in self.world.queues.values()}

    def _check_wakes(self, before: Ready, exactly: bool) -> None:
        for queue_id, now_ready in self._ready().items():
            became = len(now_ready - before.get(queue_id, set()))
            woken = self.woken[queue_id]
            assert woken >= became, f"{became} messages became ready, {woken} receivers woken"
            assert not exactly or woken == became, f"{woken} woken for {became} messages"

    def check(self) -> None:
        """Everything that can be observed is as the model says, and the database is sound."""
        queues = [
            {**msgspec.structs.asdict(info), "config": msgspec.structs.asdict(info.config)}
            for info in self.mq.list_queues()
        ]
        assert queues == naming.list_queues(self.world)
        subscriptions = [(s.topic, s.name, s.expr) for s in self.mq.list_subscriptions()]
        assert subscriptions == naming.list_subscriptions(self.world)
        finished = set()
        for name, queue in self.world.queues.items():
            assert msgspec.structs.asdict(self.mq.stats(name)) == naming.stats(self.world, name)
            assert self._everything(name) == [
                trimmed(row.peeked()) for row in sorted(queue.rows, key=lambda row: row.seq)
            ]
            finished |= {(queue.id, seq, *done) for seq, done in queue.finished.items()}
        assert self.mq.core.run(finished_deliveries()) == finished
        assert self.mq.core.run(doctor.examine()) == []

    def _everything(self, name: str) -> list[dict[str, Any]]:
        """All messages of a queue, page by page."""
        found: list[dict[str, Any]] = []
        from_seq = 0
        while page := self.mq.peek(name, from_seq=from_seq, max_messages=1000):
            found += map(fields, page)
            from_seq = page[-1].seq_number + 1
        return found


@operation(reads=True)
def finished_deliveries() -> Steps[set[tuple[int, int, str, int]]]:
    sql = """
        SELECT f.queue_id, f.seq, f.outcome, f.finished_at FROM mqlite_finished AS f
          JOIN mqlite_queues AS q ON q.id = f.queue_id AND q.deleted_at IS NULL
    """
    return set((yield Statement(sql)))


def _outcome(call: Callable[[], Any], refusal: type[Exception]) -> tuple[str, Any]:
    """The name of the error if there is one, and the answer or the error."""
    try:
        return "", call()
    except refusal as error:
        return str(error) if isinstance(error, Refused) else type(error).__name__, error


def fields(message: MessageData) -> dict[str, Any]:
    return trimmed({name: getattr(message, name) for name in MessageData.__struct_fields__})


def trimmed(message: dict[str, Any]) -> dict[str, Any]:
    """Without what is empty, as on the wire."""
    return {name: value for name, value in message.items() if value}


def received(messages: list[dict[str, Any]], now: int) -> list[dict[str, Any]]:
    """Messages as receive reports them, with what is left of their leases."""
    return [
        trimmed({**message, "lease_ms": max(message["locked_until_ms"] - now, 0)})
        for message in messages
    ]

"""Actions: sending and receiving."""

from __future__ import annotations

from typing import Any

import mqlite
from mqlite.engine import receive as engine_receive

from . import claiming, sending
from .acting import Acting
from .beside import fields, received
from .strategies import milliseconds


class Traffic(Acting):
    def send(self, to: str, draft: dict[str, Any], at: int | None, ttl: int | None) -> None:
        self.sent.append((to, draft))
        arguments = {**draft}
        arguments["group_id"] = arguments.pop("group")
        self.both(
            lambda: self.mq.send(to, at=_time(at), ttl=_time(ttl), **arguments),
            lambda _: sending.send(self.world, to, [draft], self.at(at), ttl or 0)[0],
        )

    def send_again(self, pick: int, offset: int | None, changed: bool) -> None:
        """What was sent before, perhaps with another body, perhaps just when its dedup window
        ends."""
        if self.sent:
            to, draft = self.sent[-1 - pick % len(self.sent)]
            queue = self.world.queues.get(to)
            known = self.world.dedup.get((queue.id, sending.key(draft))) if queue else None
            if known and offset is not None:
                self.beside.set_time(known[2] + queue.dedup_window_ms + offset)
            self.send(to, draft | {"body": b"other"} if changed else draft, None, None)

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
        mode, attempt = arguments[2:4]
        if answer:
            queue = self.world.queue(name)
            if attempt == "" and claiming.next_claimable(self.world, queue):
                assert self.beside.woken[queue.id], "what was left behind wakes nobody"
            if mode == "peek_lock":
                leases = [(m["seq_number"], m["lock_token"]) for m in answer]
                self.batches.append((name, attempt, leases))

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

    def consume(self, limit: int, mode: str, attempt: bool) -> None:
        self.receive("a", limit, mode, f"attempt {len(self.batches)}" if attempt else "")

    def receive_again(self, pick: int, mode: str, offset: int | None) -> None:
        """The same attempt once more, perhaps just when its leases run out."""
        tried = [batch for batch in self.batches if batch[1]]
        if tried:
            name, attempt, leases = tried[-1 - pick % len(tried)]
            self._at_deadline(name, leases[0][0], offset)
            self.receive(name, 1, mode, attempt)

    def _at_deadline(self, name: str, seq: int, offset: int | None) -> None:
        queue = self.world.queues.get(name)
        row = queue.row(seq) if queue else None
        if row and row.locked_until and offset is not None:
            self.beside.set_time(row.locked_until + offset)

    def fetch(self, some: list[int]) -> None:
        self.receive_deferred("a", some)

    def give_back(self, pick: int, name: str | None, offset: int | None) -> None:
        """A batch goes back, or to another queue, perhaps just when its leases run out."""
        if self.batches:
            owner, attempt, leases = self.batches[-1 - pick % len(self.batches)]
            name = name or owner
            self._at_deadline(owner, leases[0][0], offset)
            self.both(
                lambda: self.mq.core.run(engine_receive.give_back(name, leases, attempt)),
                lambda _: claiming.give_back(self.world, name, leases, attempt),
            )


def _time(ms: int | None) -> Any:
    return None if ms is None else milliseconds(ms)


def _tokens(answer: Any) -> list[str]:
    return [m.get("lock_token", "") for m in answer] if isinstance(answer, list) else []

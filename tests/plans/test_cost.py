"""What an operation costs does not depend on how many messages lie beside it.

The word SEARCH in a plan proves nothing: here the steps that SQLite takes are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlite.engine import (
    browse,
    catalog,
    deadletters,
    expiry,
    janitor,
    leases,
    queues,
    receive,
    retention,
    schedule,
    send,
    settle,
    settle_batch,
)
from mqlite.engine.catalog import Queue
from mqlite.engine.retention import Bounds
from mqlite.engine.steps import Operation
from mqlite.model import OutMessage

from .ballast import MAX_BYTES, NOW, Database

FACTOR = 1.2
"""How many times as many steps are allowed; a walk takes thousands of times as many."""
SLACK = 40
ALL = deadletters.Scope(last=2**63 - 1, before=2**63 - 1)

Prepare = Callable[[Database], Any]
"""Puts the messages there that the operation works on, and answers what it needs to know."""
Act = Callable[[Any], Operation[Any]]


def nothing(database: Database) -> None:
    pass


def ten(database: Database) -> list[int]:
    return database.send("q", 10)


def ten_in_lines(database: Database) -> None:
    for group in ("g", "h", "i"):
        database.send("q", 4, group_id=group)


def one_held(database: Database) -> tuple[int, str]:
    database.send("q", 3, group_id="g")
    return database.claim("q", 1)[0]


def one_held_and_kept(database: Database) -> tuple[int, str]:
    database.send("kept", 3, group_id="g")
    return database.claim("kept", 1)[0]


def ten_held(database: Database) -> list[tuple[int, str]]:
    database.send("q", 10)
    return database.claim("q", 10)


def ten_deferred(database: Database) -> list[int]:
    held = ten_held(database)
    for lease in held:
        database.run(settle.defer("q", *lease))
    return [seq for seq, _ in held]


def ten_scheduled(database: Database) -> list[int]:
    messages = [OutMessage(body=b"x", group_id="g") for _ in range(10)]
    return database.run(send.send("q", messages, at=NOW + 1, max_bytes=MAX_BYTES))


def ten_scheduled_and_due(database: Database) -> None:
    ten_scheduled(database)
    database.clock.set(NOW + 1)


def ten_leases_run_out(database: Database) -> None:
    ten_held(database)
    database.clock.set(NOW + 30_000)


def ten_expired(database: Database) -> None:
    messages = [OutMessage(body=b"x", group_id="g") for _ in range(10)]
    database.run(send.send("q", messages, ttl_ms=1, max_bytes=MAX_BYTES))
    database.clock.set(NOW + 1)


def five_dead(database: Database) -> int:
    """Answers the first sequence number."""
    held = ten_held(database)[:5]
    for lease in held:
        database.run(settle.reject("q", *lease))
    return held[0][0]


def queue_of_dead(database: Database) -> Queue:
    five_dead(database)
    found = database.run(Operation("load", lambda: catalog.load("q")))
    assert isinstance(found, Queue)
    return found


def records_of_five(database: Database) -> None:
    database.send("kept", 5, message_id="m")
    for attempt in ("one", "two"):
        claimed = database.run(receive.claim("kept", 1, attempt_id=attempt))
        for message in claimed:
            database.run(settle.complete("kept", message.seq_number, message.lock_token))
    database.clock.set(NOW + 3_600_000)


def _send(queue: str, number: int, group: str) -> Operation[list[int]]:
    messages = [OutMessage(body=b"x", group_id=group) for _ in range(number)]
    return send.send(queue, messages, max_bytes=MAX_BYTES)


def one_deleted_queue(database: Database) -> None:
    database.run(queues.create_queue("gone", "queue", {}))
    database.run(queues.delete_queue("gone", database.run(queues.generation("gone"))))


CASES: dict[str, tuple[Prepare, Act]] = {
    "send": (nothing, lambda _: _send("q", 1, "")),
    "send to a new line": (nothing, lambda _: _send("q", 1, "g")),
    "send to a blocked line": (nothing, lambda _: _send("q", 1, "blocked")),
    "send ten to a blocked queue": (nothing, lambda _: _send("strict", 10, "")),
    "send with dedup": (nothing, lambda _: _send("kept", 2, "")),
    "claim nothing beside a blocked line": (nothing, lambda _: receive.claim("q", 1)),
    "claim nothing from a blocked queue": (nothing, lambda _: receive.claim("strict", 10)),
    "claim one": (ten, lambda _: receive.claim("q", 1)),
    "claim ten": (ten, lambda _: receive.claim("q", 10)),
    "claim heads": (ten_in_lines, lambda _: receive.claim("q", 10)),
    "claim with an attempt id": (ten, lambda _: receive.claim("q", 2, attempt_id="a")),
    "receive and delete along lines": (
        ten_in_lines,
        lambda _: receive.claim("q", 10, mode="receive_and_delete"),
    ),
    "claim after expiry": (ten_expired, lambda _: receive.claim("q", 10)),
    "receive deferred": (ten_deferred, lambda seqs: receive.receive_deferred("q", seqs)),
    "give back": (ten_held, lambda held: receive.give_back("q", held)),
    "complete and promote": (one_held, lambda held: settle.complete("q", *held)),
    "complete and keep": (one_held_and_kept, lambda held: settle.complete("kept", *held)),
    "abandon": (one_held, lambda held: settle.abandon("q", *held)),
    "abandon with a delay": (one_held, lambda held: settle.abandon("q", *held, 1000)),
    "snooze": (one_held, lambda held: settle.abandon("q", *held, 1000, True)),
    "release": (one_held, lambda held: settle.release("q", *held)),
    "reject and promote": (one_held, lambda held: settle.reject("q", *held)),
    "defer": (one_held, lambda held: settle.defer("q", *held)),
    "renew": (one_held, lambda held: settle.renew("q", *held)),
    "complete a batch": (ten_held, lambda held: settle_batch.complete_batch("q", held)),
    "renew a batch": (ten_held, lambda held: settle_batch.renew_batch("q", held)),
    "cancel": (ten_scheduled, lambda seqs: send.cancel("q", seqs[0])),
    "sweep leases": (ten_leases_run_out, lambda _: leases.expire()),
    "sweep schedule": (ten_scheduled_and_due, lambda _: schedule.activate()),
    "sweep expiry": (ten_expired, lambda _: expiry.expire()),
    "sweep nothing: leases": (nothing, lambda _: leases.expire()),
    "sweep nothing: schedule": (nothing, lambda _: schedule.activate()),
    "sweep nothing: expiry": (nothing, lambda _: expiry.expire()),
    "sweep dedup": (records_of_five, lambda _: janitor.forget_duplicates()),
    "sweep receipts and attempts": (records_of_five, lambda _: janitor.forget_requests()),
    "sweep finished": (nothing, lambda _: janitor.forget_finished()),
    "sweep a deleted queue": (one_deleted_queue, lambda _: janitor.clear_deleted_queue()),
    "retention by count": (
        queue_of_dead,
        lambda queue: retention.find_excess(queue, Bounds(max_count=3)),
    ),
    "redrive in place": (
        five_dead,
        lambda first: deadletters.redrive_chunk("q", "", ALL, first - 1, 5),
    ),
    "redrive to a blocked queue": (
        five_dead,
        lambda first: deadletters.redrive_chunk("q", "strict", ALL, first - 1, 5),
    ),
    "begin a redrive": (five_dead, lambda _: deadletters.survey("q", "", 0)),
    "purge": (five_dead, lambda first: deadletters.purge_chunk("q", ALL, first - 1, 5)),
    "peek at dead letters": (
        five_dead,
        lambda first: browse.peek("q", first, "dead_lettered", 5),
    ),
    "peek at what was sent last": (ten, lambda seqs: browse.peek("q", seqs[0], "active", 10)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_cost_is_that_beside_nothing(
    case: str, beside_many: Database, nearly_empty: Database
) -> None:
    few, many = (database.cost(*CASES[case]) for database in (nearly_empty, beside_many))
    assert few > 0
    assert many <= few * FACTOR + SLACK, f"{many} steps instead of {few}"

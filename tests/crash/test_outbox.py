"""An order and its message are one: in exact bijection, whenever the process dies."""

from __future__ import annotations

import random
import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

import mqlite

from .conftest import ROUNDS, reopened
from .killing import Child

WAYS = ["take_orders", "take_orders_joined", "take_orders_elsewhere"]


def orders(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT id FROM orders ORDER BY id")]


def messages(mq: mqlite.Embedded) -> list[str]:
    found: list[str] = []
    from_seq = 0
    while page := mq.peek("q", from_seq=from_seq, max_messages=1000):
        found += [message.body.decode() for message in page]
        from_seq = page[-1].seq_number + 1
    return sorted(found)


def check(path: Path, child: Child) -> None:
    with reopened(path) as mq:
        assert messages(mq) == orders(path), "the outbox is torn"
    acknowledged = {order for (order,) in child.said("ordered")}
    assert acknowledged <= set(orders(path)), "an acknowledged order is lost"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("round_", range(ROUNDS))
def test_killed_at_any_moment_orders_and_messages_agree(
    way: str, round_: int, database: Path, chance: random.Random
) -> None:
    with Child(way, database) as child:
        child.hear(chance.randrange(1, 400))
        child.kill()
    check(database, child)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("moment", ["between the writes", "before the commit"])
def test_killed_inside_the_transaction_neither_write_is_there(
    way: str, moment: str, database: Path
) -> None:
    with Child(way, database, moment) as child:
        child.hear_until_held()
        child.kill()
    check(database, child)
    assert len(orders(database)) == len(child.said("ordered")) == 5


def test_killed_owners_and_senders_lose_nothing(database: Path, chance: random.Random) -> None:
    """Several processes take orders while owners consume, and all of them are killed."""
    received: set[str] = set()
    acknowledged: set[str] = set()
    with ExitStack() as stack:
        senders = [stack.enter_context(Child("take_orders_elsewhere", database)) for _ in range(2)]
        for _ in range(2):
            owner = stack.enter_context(Child("consume", database))
            owner.hear(chance.randrange(2, 60))
            owner.kill()
            received |= {body for (body,) in owner.said("received")}
        for sender in senders:
            sender.kill()
            acknowledged |= {order for (order,) in sender.said("ordered")}
    with reopened(database) as mq:
        assert received | set(messages(mq)) == set(orders(database))
    assert acknowledged <= set(orders(database))
    assert acknowledged
    assert received

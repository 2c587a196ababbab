"""A send that has returned survives the process; one that has not is whole or absent."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import pytest

from .conftest import ROUNDS, reopened
from .killing import Child


def stored(path: Path) -> dict[str, int]:
    """Sequence numbers by body."""
    found: dict[str, int] = {}
    with reopened(path) as mq:
        from_seq = 0
        while page := mq.peek("q", from_seq=from_seq, max_messages=1000):
            for message in page:
                assert message.body.decode() not in found, "a message is there twice"
                found[message.body.decode()] = message.seq_number
            from_seq = page[-1].seq_number + 1
    return found


def check(path: Path, child: Child) -> None:
    found = stored(path)
    for seq, body in child.said("sent"):
        assert found.get(body) == seq, "an acknowledged message is lost"


@pytest.mark.parametrize("scenario", ["send_from_threads", "send_from_tasks"])
@pytest.mark.parametrize("round_", range(ROUNDS))
def test_no_acknowledged_message_is_lost(
    scenario: str, round_: int, database: Path, chance: random.Random
) -> None:
    with Child(scenario, database) as child:
        child.hear(chance.randrange(1, 1500))
        child.kill()
    check(database, child)


@pytest.mark.parametrize("moment", ["BEGIN", "COMMIT"])
def test_killed_during_group_commit_no_message_is_lost_or_torn(moment: str, database: Path) -> None:
    with Child("send_from_threads", database, moment) as child:
        child.hear_until_held()
        child.kill()
    check(database, child)
    sent: dict[str, list[int]] = defaultdict(list)
    for body in stored(database):
        _, thread, number = body.split()
        sent[thread].append(int(number))
    for numbers in sent.values():
        assert sorted(numbers) == list(range(len(numbers))), "a send overtook an earlier one"


def test_a_batch_is_there_whole_or_not_at_all(database: Path, chance: random.Random) -> None:
    with Child("send_from_tasks", database) as child:
        child.hear(chance.randrange(100, 600))
        child.kill()
    parts: dict[str, int] = defaultdict(int)
    for body in stored(database):
        parts[body.rpartition(" ")[0]] += 1
    assert set(parts.values()) == {3}

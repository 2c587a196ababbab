"""The rehearsed drill of docs/operations.md: a snapshot of a busy queue, restored into a fresh
directory and looked at row by row."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import mqlite
from mqlite.model import MessageData
from patience import PATIENCE_S

OWNER = Path(__file__).with_name("owner.py")

Fact = list[Any]


class Owner:
    """The process of `owner.py`. `facts` are all it has said; a thread listens, so that it
    never waits for this one."""

    def __init__(self, database: Path) -> None:
        self.facts: list[Fact] = []
        self._heard = threading.Condition()
        self._process = subprocess.Popen(
            [sys.executable, str(OWNER), str(database)], stdout=subprocess.PIPE
        )
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def hear(self, what: str, number: int) -> list[Fact]:
        """Wait for so many facts of a kind beyond those known now; answers all there are."""
        wanted = len(self.said(what)) + number
        with self._heard:
            assert self._heard.wait_for(lambda: len(self.said(what)) >= wanted, PATIENCE_S)
        return self.facts.copy()

    def said(self, what: str) -> list[Fact]:
        return said(self.facts.copy(), what)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._listener.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith(b"\n"):
                with self._heard:
                    self.facts.append(json.loads(line))
                    self._heard.notify_all()


class Drill:
    """What was acknowledged before the snapshot was asked for, and all that ever was, and
    the restored file."""

    def __init__(self, before: list[Fact], ever: list[Fact], restored: Path) -> None:
        self.before = before
        self.ever = ever
        self.restored = restored
        self.states = {name: (seq, token) for name, seq, token in said(before, "state")}


def said(facts: list[Fact], what: str) -> list[Fact]:
    return [fact[1:] for fact in facts if fact[0] == what]


def command(*words: str, database: Path) -> None:
    environment = os.environ | {"MQLITE_DB": str(database)}
    environment.pop("MQLITE_ENDPOINT", None)
    done = subprocess.run(
        [sys.executable, "-m", "mqlite", *words], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def drill(tmp_path_factory: pytest.TempPathFactory) -> Drill:
    """The procedure of the page, as far as it can be typed."""
    folder = tmp_path_factory.mktemp("drill")
    database, snapshot = folder / "mq.db", folder / "mq-1.db"
    owner = Owner(database)
    try:
        owner.hear("ordered", 5)
        before = owner.hear("sent", 200)
        command("backup", str(snapshot), database=database)
        during = len(owner.said("sent")) - len(said(before, "sent"))
        owner.hear("sent", 1)
    finally:
        owner.kill()
    assert during > 0, "nothing was sent while the snapshot was taken"
    command("backup", "--verify", str(snapshot), database=database)
    fresh = folder / "restored"
    fresh.mkdir()
    shutil.copy(snapshot, fresh / "mq.db")
    return Drill(before, owner.facts, fresh / "mq.db")


@pytest.fixture
def mq(drill: Drill, tmp_path: Path) -> Iterator[mqlite.Embedded]:
    """The restored queue, a copy of it for each test."""
    with mqlite.open(str(shutil.copy(drill.restored, tmp_path))) as opened:
        yield opened


def messages(mq: mqlite.Embedded, queue: str) -> Iterator[MessageData]:
    from_seq = 0
    while page := mq.peek(queue, from_seq=from_seq, max_messages=1000):
        yield from page
        from_seq = page[-1].seq_number + 1


def test_every_message_acknowledged_before_is_there_with_its_body(
    drill: Drill, mq: mqlite.Embedded
) -> None:
    found = {message.seq_number: message.text for message in messages(mq, "load")}
    for number, i, seq in said(drill.before, "sent"):
        assert found[seq] == f"{number} {i} " + "x" * 500


def test_it_is_one_moment_of_every_sender(drill: Drill, mq: mqlite.Embedded) -> None:
    senders: dict[str, list[int]] = {}
    for message in messages(mq, "load"):
        number, i, _ = message.text.split(" ")
        senders.setdefault(number, []).append(int(i))
    assert senders
    for found in senders.values():
        assert found == list(range(len(found)))
    last = max(message.seq_number for message in messages(mq, "load"))
    assert last < max(seq for _, _, seq in said(drill.ever, "sent")), "the load had ended"


def test_the_applications_rows_and_their_messages_agree(drill: Drill, mq: mqlite.Embedded) -> None:
    with closing(sqlite3.connect(drill.restored)) as connection:
        orders = [row[0] for row in connection.execute("SELECT id FROM orders ORDER BY rowid")]
    assert [message.text for message in messages(mq, "eu")] == orders
    assert len(orders) >= len(said(drill.before, "ordered"))


def test_leases_are_reclaimed_by_rule(drill: Drill, mq: mqlite.Embedded) -> None:
    found = {message.text: message for message in messages(mq, "states")}
    assert {name: message.state for name, message in found.items()} == {
        "scheduled": "scheduled",
        "deferred": "deferred",
        "dead": "dead_lettered",
        "at-the-limit": "dead_lettered",
        "locked": "active",
    }
    assert found["dead"].dead_letter_reason == "bad"
    assert found["at-the-limit"].dead_letter_reason == "MaxDeliveryCountExceeded"
    assert found["locked"].delivery_count == 1
    for name in ("locked", "at-the-limit"):
        with pytest.raises(mqlite.LockLost):
            mq.complete("states", *drill.states[name])


def test_a_queue_that_keeps_its_leases_keeps_them(drill: Drill, mq: mqlite.Embedded) -> None:
    assert mq.stats("kept").locked == 1
    mq.complete("kept", *drill.states["kept"])


def test_deferred_work_dead_letters_keys_and_filters_go_on(
    drill: Drill, mq: mqlite.Embedded
) -> None:
    [deferred] = mq.receive_deferred("states", [drill.states["deferred"][0]])
    deferred.complete()
    assert mq.redrive("states").count == 2
    assert [[key.id] for key in mq.list_keys().keys] == said(drill.before, "key")
    assert mq.send("events", "elsewhere", subject="us") == 0
    assert mq.send("events", "here", subject="eu") > 0


def test_nothing_is_wrong_with_it(mq: mqlite.Embedded) -> None:
    assert mq.examine() == []
    assert mq.status().warnings == []


def test_a_canary_passes(mq: mqlite.Embedded) -> None:
    mq.create_queue("canary")
    mq.send("canary", "tweet")
    [message] = mq.receive("canary")
    assert message.text == "tweet"
    message.complete()
    assert mq.stats("canary").total == 0

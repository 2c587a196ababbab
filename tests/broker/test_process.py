"""`mqlite serve` as a process of its own: a small part of the contract, and `kill -9`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from mqlite.client import Client
from mqlite.errors import DedupConflict, LockLost, NotFound, Unauthenticated

TOKEN = "process-token"


class Process:
    """A broker on a database, started again where it was stopped."""

    def __init__(self, database: Path) -> None:
        self._environment = os.environ | {
            "MQLITE_DB": f"file:{database}",
            "MQLITE_TOKENS": TOKEN,
        }
        self._resources = ExitStack()
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "mqlite", "serve", "--addr", "127.0.0.1:0"]
        self.popen = self._resources.enter_context(
            subprocess.Popen(command, stderr=subprocess.PIPE, env=self._environment, text=True)
        )
        self._resources.callback(self.popen.kill)
        assert self.popen.stderr is not None
        for line in self.popen.stderr:
            if line.startswith("ready: "):
                self.url = line.split()[1]
                break
        # The request log, which would fill the pipe.
        drain = ThreadPoolExecutor(1)
        drain.submit(self.popen.stderr.read)
        drain.shutdown(wait=False)

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()

    def client(self, token: str = TOKEN) -> Client:
        client = Client(self.url, token=token)
        self._resources.callback(client.close)
        return client

    def close(self) -> None:
        self._resources.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path / "mq.db")
    yield process
    process.close()


def test_the_life_of_a_message(broker: Process) -> None:
    mq = broker.client()
    mq.create_queue("jobs", max_delivery_count=2)
    assert mq.send("jobs", b"\x00one", subject="s", properties={"k": "v"}) == 1
    [message] = mq.receive("jobs")
    assert (message.body, message.subject, message.properties) == (b"\x00one", "s", {"k": "v"})
    assert 0 < message.lease_ms <= 30_000
    message.abandon()
    [message] = mq.receive("jobs", wait="20s")
    assert message.delivery_count == 2
    message.abandon()
    assert mq.stats("jobs").dead_lettered == 1
    assert mq.redrive("jobs").count == 1
    [message] = mq.receive("jobs")
    message.complete()
    message.complete()
    assert mq.stats("jobs").total == 0
    with pytest.raises(LockLost):
        mq.complete("jobs", 1, "another token")


def test_topics_duplicates_and_times(broker: Process) -> None:
    mq = broker.client()
    mq.subscribe("events", "eu", expr='properties["region"] == "eu"')
    mq.subscribe("events", "all")
    mq.send("events", "a", properties={"region": "eu"})
    mq.send("events", "b", properties={"region": "us"})
    assert [message.text for message in mq.peek("eu")] == ["a"]
    assert [message.text for message in mq.peek("all")] == ["a", "b"]

    mq.create_queue("once", dedup_window="1h")
    first = mq.send("once", "x", message_id="id")
    assert mq.send("once", "x", message_id="id") == first
    with pytest.raises(DedupConflict):
        mq.send("once", "y", message_id="id")

    later = mq.send("once", "later", at="1h")
    assert mq.stats("once").scheduled == 1
    mq.cancel("once", later)
    with pytest.raises(NotFound):
        mq.cancel("once", later)
    mq.complete_batch("once", mq.receive("once"))
    due = mq.send("once", "soon", at="2s")
    [message] = mq.receive("once", wait="20s")
    assert message.seq_number == due


def test_a_send_ends_the_wait_of_another_client(broker: Process) -> None:
    mq, other = broker.client(), broker.client()
    mq.create_queue("jobs")
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(mq.receive, "jobs", wait="20s")
        other.send("jobs", "at last")
        assert [message.text for message in waiting.result(60)] == ["at last"]


def test_only_the_token_opens_it(broker: Process) -> None:
    with pytest.raises(Unauthenticated):
        broker.client("wrong").stats("jobs")


def test_many_clients_share_no_message(broker: Process) -> None:
    broker.client().create_queue("jobs")

    def send(sender: int) -> None:
        with Client(broker.url, token=TOKEN) as mq:
            for number in range(20):
                mq.send("jobs", f"{sender}-{number}")

    def consume(_: int) -> list[str]:
        done: list[str] = []
        with Client(broker.url, token=TOKEN) as mq:
            while messages := mq.receive("jobs", max_messages=5, wait="1s"):
                done += [message.text for message in messages]
                assert all(result.ok for result in mq.complete_batch("jobs", messages))
        return done

    with ThreadPoolExecutor(16) as threads:
        sending = [threads.submit(send, sender) for sender in range(8)]
        consuming = [threads.submit(consume, consumer) for consumer in range(8)]
        for each in sending:
            each.result(60)
        received = Counter(body for each in consuming for body in each.result(60))
    left = [message.text for message in broker.client().peek("jobs", max_messages=1000)]
    assert received + Counter(left) == Counter(
        f"{sender}-{number}" for sender in range(8) for number in range(20)
    )


def test_what_was_answered_survives_a_kill(broker: Process) -> None:
    mq = broker.client()
    mq.create_queue("jobs", lock_duration="1h")
    numbers = [mq.send("jobs", str(number)) for number in range(20)]
    [done, held] = mq.receive("jobs", max_messages=2)
    done.complete()
    broker.kill()

    broker.start()
    mq = broker.client()
    assert [message.seq_number for message in mq.peek("jobs", max_messages=32)] == numbers[1:]
    [again] = mq.receive("jobs")
    assert (again.seq_number, again.delivery_count) == (held.seq_number, 2)
    with pytest.raises(LockLost):
        mq.complete("jobs", held.seq_number, held.lock_token)
    again.complete()
    mq.complete("jobs", done.seq_number, done.lock_token)

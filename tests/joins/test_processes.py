"""Several processes send while the owner consumes, is killed, and comes back."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

import mqlite
from mqlite.engine import doctor
from patience import eventually, start

from .helpers import bodies, waiting_receiver

HERE = Path(__file__).parent
LIBRARIES = (
    "sqlite3",
    "sqlite3-none-begin",
    "sqlalchemy",
    "sqlalchemy-session-configured",
    "django",
    "django-configured",
)
TRANSACTIONS = 40
STEP = 15 * 66_666


class Process:
    """A child process that is gone afterwards."""

    def __init__(self, script: str, *arguments: object) -> None:
        command = [sys.executable, str(HERE / script), *map(str, arguments)]
        self._popen = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._reading = start(self._popen.communicate)

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    def must_run(self) -> None:
        """Fails with what it had to say where it has ended."""
        if not self.running:
            raise AssertionError(self._reading.result()[1])

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self._popen.kill()
        self._popen.wait()

    def result(self) -> list[int]:
        """The numbers it printed. It must have ended by itself."""
        out, err = self._reading.result(120)
        assert self._popen.returncode == 0, err
        return [int(line) for line in out.split()]


@pytest.fixture
def processes() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def database(path: Path) -> Path:
    with mqlite.open(path) as mq:
        mq.create_queue("orders", ordering_mode="group_fifo", max_delivery_count=100)
        mq.create_queue("echo")
        with mq.transaction() as tx:
            tx.execute("CREATE TABLE orders (id INTEGER)")
            tx.execute("CREATE TABLE consumed (id INTEGER)")
    return path


def numbers(path: Path, table: str) -> list[int]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as connection:
        return [number for (number,) in connection.execute(f"SELECT id FROM {table}")]


def drained(path: Path) -> list[int]:
    """What is still in the queue when the owner is gone for good."""
    left = []
    with mqlite.open(path) as mq:
        assert mq.core.run(doctor.examine()) == []
        while messages := mq.receive("orders", max_messages=250, mode="receive_and_delete"):
            left += [int(message.body) for message in messages]
        stats = mq.stats("orders")
        assert (stats.total, stats.dead_lettered) == (0, 0)
        assert mq.stats("echo").total == len(numbers(path, "consumed"))
    return left


def test_orders_and_messages_match_through_crashes_of_the_owner(
    database: Path, processes: ExitStack
) -> None:
    senders = []
    for place, library in enumerate(LIBRARIES):
        sender = Process("sender.py", library, database, 1 + place * STEP, TRANSACTIONS)
        processes.callback(sender.kill)
        senders.append(sender)
    victim = Process("sender.py", "sqlite3", database, 1 + 99 * STEP, 10**5)
    processes.callback(victim.kill)

    crashes = 0
    while crashes < 3 or any(sender.running for sender in senders):
        owner = Process("owner.py", database)
        processes.callback(owner.kill)
        consumed = len(numbers(database, "consumed"))

        def goes_on(owner: Process = owner, enough: int = consumed + 15) -> bool:
            owner.must_run()
            return len(numbers(database, "consumed")) >= enough

        eventually(goes_on, within_s=120)
        owner.kill()
        crashes += 1
    told = [number for sender in senders for number in sender.result()]
    victim.kill()

    orders = numbers(database, "orders")
    delivered = numbers(database, "consumed") + drained(database)
    assert sorted(delivered) == sorted(orders)
    assert all(number > 0 for number in orders)
    assert set(told) <= set(orders)
    assert {number for number in orders if number < 99 * STEP} == set(told)
    assert len(told) == len(LIBRARIES) * sum(1 for n in range(1, TRANSACTIONS + 1) if n % 3)


@pytest.mark.parametrize("library", ["sqlite3", "sqlalchemy", "django"])
def test_an_owner_at_rest_notices_a_commit_of_another_process(
    mq: mqlite.Embedded, path: Path, processes: ExitStack, library: str
) -> None:
    mq.create_queue("orders", lock_duration="10m")
    receiver = waiting_receiver(mq, "orders")
    sender = Process("sender.py", library, path, 1, 3)
    processes.callback(sender.kill)
    assert sender.result() == [1, 2]
    [message] = receiver.result()
    assert message.body == b"1"
    assert [message.body for message in mq.receive("orders", wait="20s")] == [b"2"]


def test_what_was_sent_while_nobody_owned_the_queue_is_there_and_told(
    database: Path, processes: ExitStack
) -> None:
    sender = Process("sender.py", "sqlite3", database, 1, 9)
    processes.callback(sender.kill)
    told = sender.result()
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT count(*) FROM mqlite_effects").fetchone() == (6,)
    with mqlite.open(database) as mq:
        assert [int(body) for body in bodies(mq, "orders")] == told
        with mq.transaction() as tx:
            assert tx.execute("SELECT count(*) FROM mqlite_effects").fetchone() == (0,)

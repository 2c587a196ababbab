"""Receiving: nothing is acknowledged that nobody could see."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mqlite
from client import stub
from mqlite.cli import streams

from .conftest import Run

Shell = Callable[[str], subprocess.CompletedProcess[str]]


@pytest.fixture
def waiting(database: Path) -> Callable[[], mqlite.QueueStats]:
    """A queue with one message; answers what has become of it."""
    with mqlite.open(f"file:{database}") as mq:
        mq.create_queue("q", keep_leases=True)
        mq.send("q", b"x" * 200_000)

    def stats() -> mqlite.QueueStats:
        with mqlite.open(f"file:{database}") as mq:
            return mq.stats("q")

    return stats


@pytest.mark.parametrize("redirect", [">&-", ">/dev/null"])
def test_output_that_cannot_be_delivered_claims_nothing(
    shell: Shell, waiting: Callable[[], mqlite.QueueStats], redirect: str
) -> None:
    result = shell(f"$mqlite receive q {redirect}")
    assert result.returncode == 1
    assert result.stderr.startswith("error: standard output is closed or the null device")
    assert result.stderr.count("\n") == 1
    stats = waiting()
    assert (stats.active, stats.locked) == (1, 0)


@pytest.mark.parametrize("redirect", [">&-", ">/dev/null"])
def test_a_queue_can_be_drained_into_nothing_on_purpose(
    shell: Shell, waiting: Callable[[], mqlite.QueueStats], redirect: str
) -> None:
    assert shell(f"$mqlite receive q --delete {redirect}").returncode == 0
    assert waiting().total == 0


def test_locks_can_be_taken_without_output(
    shell: Shell, waiting: Callable[[], mqlite.QueueStats]
) -> None:
    assert shell("$mqlite receive q --no-ack >/dev/null").returncode == 0
    assert waiting().locked == 1


def test_a_broken_pipe_leaves_the_message_locked(
    shell: Shell, waiting: Callable[[], mqlite.QueueStats]
) -> None:
    result = shell("$mqlite receive q | true; echo ${PIPESTATUS[0]}")
    assert result.stdout == "1\n"
    assert result.stderr == "error: cannot write to standard output: Broken pipe\n"
    assert waiting().locked == 1


def test_a_full_disk_leaves_the_message_locked(
    shell: Shell, waiting: Callable[[], mqlite.QueueStats]
) -> None:
    result = shell("$mqlite receive q >/dev/full")
    assert result.returncode == 1
    assert result.stderr == "error: cannot write to standard output: No space left on device\n"
    assert waiting().locked == 1


def test_files_and_pipes_are_deliverable(
    shell: Shell, waiting: Callable[[], mqlite.QueueStats], tmp_path: Path
) -> None:
    assert shell(f"$mqlite receive q >{tmp_path / 'out'}").returncode == 0
    assert (tmp_path / "out").read_text().startswith("seq=1 ")
    assert waiting().total == 0


def test_deliverable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    read, write = os.pipe()
    with os.fdopen(read), os.fdopen(write, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert streams.deliverable()
    with (tmp_path / "file").open("w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        assert streams.deliverable()
    with open(os.devnull, "w") as null:
        monkeypatch.setattr(sys, "stdout", null)
        assert not streams.deliverable()


def test_a_closed_standard_output_is_not_taken_by_the_database(
    shell: Shell, waiting: Callable[[], mqlite.QueueStats], database: Path
) -> None:
    before = database.read_bytes()[:16]
    assert shell("$mqlite peek q --output json >&- 2>&- <&-").returncode == 0
    assert database.read_bytes()[:16] == before
    assert waiting().active == 1


class FakeBroker:
    """One batch of messages, and a settlement that takes its time."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.renewed = threading.Event()
        self.lost: set[int] = set()
        self.knows_renew_batch = True
        self.wait_for_renewal = False

    def __call__(self, method: str, body: dict[str, Any]) -> stub.Answer:
        if method == "Receive":
            return 200, {"messages": [self._message(seq) for seq in range(1, self.count + 1)]}
        if method == "CompleteBatch":
            if self.wait_for_renewal:
                assert self.renewed.wait(30)
            return 200, {"results": [self._settled(item) for item in body["messages"]]}
        if method == "RenewBatch" and self.knows_renew_batch:
            self.renewed.set()
            return 200, {"results": [self._settled(item) for item in body["messages"]]}
        if method == "Renew":
            self.renewed.set()
            return 200, {"ok": True}
        return 404, stub.NO_PATH

    def _message(self, seq: int) -> dict[str, Any]:
        return {"seq_number": seq, "lock_token": f"t{seq}", "delivery_count": 1, "lease_ms": 90}

    def _settled(self, item: dict[str, Any]) -> dict[str, Any]:
        seq = item["seq_number"]
        return {"seq_number": seq, "ok": seq not in self.lost, "lease_ms": 90}


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[stub.StubBroker]:
    with stub.serving(FakeBroker(3)) as serving:
        monkeypatch.setenv("MQLITE_ENDPOINT", serving.url)
        yield serving


def test_a_batch_is_completed_by_one_request(cli: Run, broker: stub.StubBroker) -> None:
    result = cli("receive", "q", "--max", "3", "--wait", "0s")
    assert (result.code, result.out.count("\n")) == (0, 3)
    asked = broker.requests[0].body
    assert (asked["queue"], asked["max_messages"]) == ("q", 3)
    assert broker.methods.count("CompleteBatch") == 1
    assert "Complete" not in broker.methods
    assert "lock-token" not in result.out


def test_messages_that_were_not_completed_are_named(cli: Run, broker: stub.StubBroker) -> None:
    behaviour = broker.behaviour
    assert isinstance(behaviour, FakeBroker)
    behaviour.lost = {1, 3}
    result = cli("receive", "q", "--max", "3")
    assert result.code == 1
    assert result.out.count("\n") == 3
    assert result.err == (
        "error: the lease was lost before completion, delivered again: seq 1, 3\n"
    )


@pytest.mark.parametrize("knows_renew_batch", [True, False])
def test_leases_are_renewed_until_settlement_has_returned(
    cli: Run, broker: stub.StubBroker, knows_renew_batch: bool
) -> None:
    behaviour = broker.behaviour
    assert isinstance(behaviour, FakeBroker)
    behaviour.knows_renew_batch = knows_renew_batch
    behaviour.wait_for_renewal = True
    result = cli("receive", "q", "--max", "3")
    assert result.code == 0
    warnings = result.err.count("renewing leases one by one")
    assert warnings == (0 if knows_renew_batch else 1)


def test_nothing_is_renewed_or_completed_without_automatic_acknowledgement(
    cli: Run, broker: stub.StubBroker
) -> None:
    assert cli("receive", "q", "--no-ack", "--max", "3").out.count("lock-token=t") == 3
    assert cli("receive", "q", "--delete").code == 0
    assert set(broker.methods) == {"Receive"}
    assert broker.requests[1].body["receive_mode"] == 1


def test_a_received_message_shows_only_fields_of_the_wire(
    cli: Run, broker: stub.StubBroker
) -> None:
    extra = {"state": "locked", "visible_at_ms": 1, "expires_at_ms": 2}
    broker.behaviour = lambda method, body: (
        200,
        {"messages": [{"seq_number": 1, "lock_token": "t"} | extra]},
    )
    out = cli("receive", "q", "--no-ack", "--output", "json").out
    assert '"lock_token": "t"' in out
    assert not any(name in out for name in extra)


def test_an_interrupt_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    reached, release = threading.Event(), threading.Event()

    def stalled(method: str, body: dict[str, Any]) -> stub.Answer:
        reached.set()
        assert release.wait(30)
        return 200, {"messages": []}

    with stub.serving(stalled) as broker:
        monkeypatch.setenv("MQLITE_ENDPOINT", broker.url)
        command = [sys.executable, "-m", "mqlite", "receive", "q", "--wait", "20s"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert reached.wait(30)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        release.set()
    assert (process.returncode, err) == (1, "error: interrupted\n")

"""Keeping leases alive while messages are printed and completed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from mqlite.cli import safe_ack
from mqlite.cli.safe_ack import Lease, Renewer, pause_before_renewal
from mqlite.errors import LockLost, MqliteError, Unavailable, Unsupported
from mqlite.messages import Message
from mqlite.model import RenewResult


def messages(count: int = 1, lease_ms: int = 30_000) -> list[Message]:
    return [
        Message(seq_number=seq, lock_token=f"t{seq}", lease_ms=lease_ms)
        for seq in range(1, count + 1)
    ]


class FakeQueue:
    """Renews as told; remembers how it was asked."""

    def __init__(self, lease_ms: int = 30_000) -> None:
        self.lease_ms = lease_ms
        self.batches: list[int] = []
        self.singles: list[int] = []
        self.lost: set[int] = set()
        self.failure: MqliteError | None = None

    def renew_batch(self, queue: str, leases: Iterable[Any]) -> list[RenewResult]:
        pairs = list(leases)
        self.batches.append(len(pairs))
        if self.failure is not None:
            raise self.failure
        return [RenewResult(seq, seq not in self.lost, lease_ms=self.lease_ms) for seq, _ in pairs]

    def renew(self, queue: str, seq_number: int, lock_token: str) -> RenewResult:
        self.singles.append(seq_number)
        if seq_number in self.lost:
            raise LockLost("lost")
        return RenewResult(seq_number, True, lease_ms=self.lease_ms)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def renewer(queue: Any, received: Sequence[Message], clock: Clock | None = None) -> Renewer:
    return Renewer(queue, "q", received, clock=clock or Clock())


@pytest.mark.parametrize(
    ("remaining", "pause"),
    [
        (None, 1.0),
        (30.0, 10.0),
        (0.3, 0.1),
        (0.12, 0.05),
        (0.09, 0.045),
        (0.002, 0.001),
        (0.0009, 0.0),
        (0.0, 0.0),
        (-5.0, 0.0),
    ],
)
def test_the_pause_before_a_renewal(remaining: float | None, pause: float) -> None:
    assert pause_before_renewal(remaining) == pytest.approx(pause)


@pytest.mark.parametrize("remaining", [0.001, 0.01, 0.05, 0.1, 0.15, 1, 30, 3600])
def test_a_renewal_is_never_later_than_half_the_lease(remaining: float) -> None:
    assert pause_before_renewal(remaining) <= remaining / 2


def test_the_tightest_lease_sets_the_pace() -> None:
    received = [*messages(1, lease_ms=30_000), *messages(1, lease_ms=6_000)]
    assert renewer(FakeQueue(), received).pause() == pytest.approx(2.0)


def test_a_batch_is_renewed_in_groups_of_512() -> None:
    queue = FakeQueue()
    renewer(queue, messages(1100)).renew_all()
    assert queue.batches == [512, 512, 76]
    assert queue.singles == []


@pytest.mark.parametrize("count", [64, 256])
def test_a_whole_receive_is_one_request(count: int) -> None:
    queue = FakeQueue()
    renewer(queue, messages(count)).renew_all()
    assert queue.batches == [count]


def test_the_reported_deadline_is_followed_and_the_message_is_not_touched() -> None:
    queue, clock = FakeQueue(lease_ms=9_000), Clock()
    received = messages(1, lease_ms=6_000)
    keeping = renewer(queue, received, clock)
    keeping.renew_all()
    assert keeping.pause() == pytest.approx(3.0)
    assert received[0].lease_ms == 6_000


def test_a_lost_lease_is_followed_no_longer() -> None:
    queue = FakeQueue()
    queue.lost = {2}
    keeping = renewer(queue, messages(3))
    keeping.renew_all()
    keeping.renew_all()
    assert queue.batches == [3, 2]


def test_a_failed_renewal_keeps_a_deadline_that_is_still_ahead(
    capsys: pytest.CaptureFixture[str],
) -> None:
    queue, clock = FakeQueue(), Clock()
    queue.failure = Unavailable("busy", reason="overloaded")
    keeping = renewer(queue, messages(2, lease_ms=6_000), clock)
    clock.now += 3.0
    keeping.renew_all()
    keeping.renew_all()
    assert keeping.pause() == pytest.approx(1.0)
    assert queue.singles == []
    assert capsys.readouterr().err.count("leases could not be renewed") == 1


def test_a_failed_renewal_of_a_spent_lease_does_not_spin() -> None:
    queue, clock = FakeQueue(), Clock()
    queue.failure = Unavailable("busy", reason="overloaded")
    keeping = renewer(queue, messages(1, lease_ms=6_000), clock)
    clock.now += 6.0
    assert keeping.pause() == 0.0
    keeping.renew_all()
    assert keeping.pause() == 1.0


def test_a_broker_without_batches_is_asked_one_by_one_for_good(
    capsys: pytest.CaptureFixture[str],
) -> None:
    queue = FakeQueue()
    queue.failure = Unsupported("no such path")
    queue.lost = {2}
    keeping = renewer(queue, messages(3))
    keeping.renew_all()
    keeping.renew_all()
    assert queue.batches == [3]
    assert queue.singles == [1, 2, 3, 1, 3]
    assert capsys.readouterr().err.count("warning: ") == 1


def test_an_inferred_deadline_is_measured_before_the_call() -> None:
    clock = Clock()

    class Slow(FakeQueue):
        def renew(self, queue: str, seq_number: int, lock_token: str) -> RenewResult:
            clock.now += 2.0
            return RenewResult(seq_number, True)

    queue = Slow()
    queue.failure = Unsupported("no such path")
    keeping = renewer(queue, messages(1, lease_ms=6_000), clock)
    keeping.renew_all()
    assert keeping.pause() == pytest.approx((6.0 - 2.0) / 3)


def test_a_lease_that_arrived_spent_has_no_length_to_infer_from() -> None:
    expired = Message(seq_number=1, lock_token="t", locked_until_ms=1)
    lease = Lease(expired, 1000.0)
    assert lease.deadline is not None
    assert lease.deadline < 1000.0
    lease.renewed(RenewResult(1, True), 1000.0, 1001.0)
    assert lease.deadline is None


def test_a_broker_that_reports_no_lease_is_believed_on_its_deadline() -> None:
    until = int(time.time() * 1000) + 60_000
    lease = Lease(Message(seq_number=1, lock_token="t", locked_until_ms=until), 1000.0)
    assert lease.deadline == pytest.approx(1060.0, abs=5.0)


def test_renewal_spans_the_block() -> None:
    enough = threading.Event()

    class Counting(FakeQueue):
        def renew_batch(self, queue: str, leases: Iterable[Any]) -> list[RenewResult]:
            results = super().renew_batch(queue, leases)
            if len(self.batches) == 5:
                enough.set()
            return results

    queue = Counting(lease_ms=60)
    with Renewer(queue, "q", messages(64, lease_ms=60)):  # type: ignore[arg-type]
        assert enough.wait(30)
    assert queue.batches[:5] == [64] * 5


def test_a_renewal_that_hangs_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(safe_ack, "JOIN_TIMEOUT", 0.01)
    inside, release = threading.Event(), threading.Event()

    class Stalled(FakeQueue):
        def renew_batch(self, queue: str, leases: Iterable[Any]) -> list[RenewResult]:
            inside.set()
            release.wait(30)
            raise Unavailable("closed", reason="closing")

    with Renewer(Stalled(), "q", messages(1, lease_ms=1)):  # type: ignore[arg-type]
        assert inside.wait(30)
    assert not release.is_set()
    release.set()

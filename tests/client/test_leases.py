"""Leases are deadlines of the client's own clock, however far the broker's is off."""

from __future__ import annotations

from email.utils import formatdate
from typing import Any

import pytest

from client.conftest import Connect
from client.peer import Peer, answer, scripted
from mqlite.clock import ManualClock

HERE = 1_700_000_000_000
THERE = HERE + 3_600_000
"""The broker's time: an hour ahead."""
BEGAN = 1_000.0
"""When the calls begin, in seconds of the client's clock."""


def leased(**fields: Any) -> dict[str, Any]:
    return {"seq_number": 1, "lock_token": "t", "locked_until_ms": THERE + 30_000} | fields


def received(connect: Connect, answered: bytes, *, took_ms: int = 0, wait: float = 0) -> float:
    """The deadline of the one message in this answer."""
    clock = ManualClock(HERE)

    def script(peer: Peer) -> None:
        connection = peer.accept()
        peer.read(connection)
        clock.advance(took_ms)
        connection.sendall(answered)

    with scripted(script) as peer:
        mq = connect(peer.url, clock=clock)
        clock.advance(int(BEGAN * 1000))
        [message] = mq.receive("q", wait=wait)
    return message.lease_deadline


def test_a_lease_counts_from_before_the_request(connect: Connect) -> None:
    one = answer({"messages": [leased(lease_ms=30_000)]})
    assert received(connect, one, took_ms=700) == BEGAN + 30


def test_what_a_long_poll_waited_counts_too(connect: Connect) -> None:
    one = answer({"messages": [leased(lease_ms=30_000)], "waited_ms": 15_000})
    assert received(connect, one, took_ms=15_600, wait=20) == BEGAN + 45


def test_without_lease_ms_the_date_of_the_answer_tells(connect: Connect) -> None:
    one = answer({"messages": [leased()]}, Date=formatdate(THERE / 1000, usegmt=True))
    # It may have been almost a second later than it says.
    assert received(connect, one) == BEGAN + 29


def test_a_lease_that_was_over_by_the_date(connect: Connect) -> None:
    one = answer({"messages": [leased()]}, Date=formatdate(THERE / 1000 + 60, usegmt=True))
    assert received(connect, one) == BEGAN


@pytest.mark.parametrize("date", ["", "yesterday"])
def test_without_either_there_is_no_deadline(connect: Connect, date: str) -> None:
    one = answer({"messages": [leased()]}, Date=date)
    assert received(connect, one) == 0


def test_a_message_without_a_lease_has_no_deadline(connect: Connect) -> None:
    assert received(connect, answer({"messages": [{"seq_number": 1}]})) == 0


def test_renewals_have_deadlines(connect: Connect) -> None:
    results = [leased(lease_ms=40_000, ok=True), {"seq_number": 2, "ok": False}]
    del results[0]["lock_token"]
    one = answer({"results": results})
    single = answer({"results": results[:1]})
    clock = ManualClock(HERE)
    with scripted(lambda peer: peer.serve(one, single)) as peer:
        mq = connect(peer.url, clock=clock)
        clock.advance(5_000)
        held, lost = mq.renew_batch("q", [(1, "t"), (2, "t")])
        assert (held.ok, held.lease_deadline) == (True, 45.0)
        assert (lost.ok, lost.lease_deadline) == (False, 0.0)
        assert mq.renew("q", 1, "t").lease_deadline == 45.0


def test_a_deadline_does_not_come_from_the_wire(connect: Connect) -> None:
    results = [{"seq_number": 2, "ok": False, "lease_deadline": 99.0}]
    with scripted(lambda peer: peer.serve(answer({"results": results}))) as peer:
        [lost] = connect(peer.url).renew_batch("q", [(2, "t")])
    assert lost.lease_deadline == 0.0

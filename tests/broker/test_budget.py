"""Backpressure: a bounded number and weight of pending requests, then 503."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from broker.support import TOKEN, Api, connect, post_bytes
from mqlite.broker.budget import Budget
from mqlite.broker.limits import Limits
from mqlite.broker.serve import serving
from mqlite.embedded import Embedded
from mqlite.errors import Unavailable
from patience import eventually

UNFINISHED = post_bytes("Send", b" " * 500)[:-1]


def test_the_number_of_requests_is_bounded_with_a_reserve_for_settling(mq: Embedded) -> None:
    with serving(mq, tokens=[TOKEN], limits=Limits(requests=8)) as url, ExitStack() as open_ones:
        api = Api(url)
        for _ in range(7):
            connection = open_ones.enter_context(connect(url))
            connection.sendall(UNFINISHED)
        eventually(lambda: api.post("Send", {"queue": "q"}).status == 503)
        reply = api.post("Receive", {"queue": "q"})
        assert (reply.status, reply.code) == (503, "unavailable")
        assert reply.headers["retry-after"] == "1"
        settling = api.post("Complete", {"queue": "q", "seq_number": 1, "lock_token": "t"})
        assert settling.status == 409
        assert api.request("GET", "/healthz").status == 200
        open_ones.close()
        eventually(lambda: api.post("Send", {"queue": "q"}).status == 404)


def test_bytes_that_are_being_read_count(mq: Embedded) -> None:
    with serving(mq, tokens=[TOKEN], limits=Limits(pending_bytes=600)) as url:
        api = Api(url)
        api.ok("CreateQueue", name="q")
        with connect(url) as connection:
            connection.sendall(UNFINISHED)
            eventually(lambda: api.post("Send", b" " * 100).status == 503)
            assert api.post("Stats", {"queue": "q"}).status == 200
        eventually(lambda: api.post("Send", b" " * 100).status == 400)
        assert api.post("Send", b" " * 601).status == 503


def test_the_budget_is_given_back() -> None:
    budget = Budget(Limits(requests=8, pending_bytes=80))
    share = budget.enter(settles=False, reads=False)
    budget.hold(70, share)
    with pytest.raises(Unavailable, match="bytes"):
        budget.hold(1, share)
    settling = budget.enter(settles=True, reads=False)
    budget.hold(10, settling)
    budget.leave(10)
    budget.leave(70)
    assert (budget.requests, budget.bytes) == (0, 0)

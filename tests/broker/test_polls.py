"""Long polls over a socket: woken, abandoned, and cut short."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import mqlite
from broker.support import TOKEN, Api, connect, post_bytes, read_all
from mqlite.broker.limits import Limits
from mqlite.broker.serve import serving
from mqlite.clock import ManualClock
from mqlite.embedded import Embedded
from patience import PATIENCE_S, eventually

POLL = b'{"queue":"q","wait_time_ms":20000}'


class InThread:
    """A call whose result is waited for later."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._results: list[Any] = []
        self._thread = threading.Thread(target=lambda: self._results.append(call()))
        self._thread.start()

    def result(self) -> Any:
        self._thread.join(PATIENCE_S)
        assert self._results, "no result came"
        return self._results[0]


def test_a_send_ends_the_wait(api: Api, clock: ManualClock) -> None:
    poll = InThread(lambda: api.receive("q", wait_time_ms=20_000))
    eventually(lambda: clock.waiting == 1)
    api.send("q", b"hi")
    assert poll.result()[0]["body"] == "aGk="


def test_the_wait_ends_empty_and_is_clamped_to_twenty_seconds(api: Api, clock: ManualClock) -> None:
    poll = InThread(lambda: api.receive("q", wait_time_ms=10**15))
    eventually(lambda: clock.waiting == 1)
    clock.advance(20_000)
    assert poll.result() == []


def test_a_client_that_goes_away_costs_nothing(api: Api, clock: ManualClock) -> None:
    with connect(api.url) as connection:
        connection.sendall(post_bytes("Receive", POLL))
        eventually(lambda: clock.waiting == 1)
    eventually(lambda: clock.waiting == 0)
    api.send("q", b"hi")
    (message,) = api.receive("q")
    assert message["delivery_count"] == 1


def test_a_client_that_pipelined_behind_its_poll_and_goes_away(
    api: Api, clock: ManualClock
) -> None:
    with connect(api.url) as connection:
        connection.sendall(post_bytes("Receive", POLL) + post_bytes("Stats", b'{"queue":"q"}') * 2)
        eventually(lambda: clock.waiting == 1)
    eventually(lambda: clock.waiting == 0)


def test_a_pipelined_request_waits_for_the_poll_before_it(api: Api, clock: ManualClock) -> None:
    with connect(api.url) as connection:
        connection.sendall(
            post_bytes("Receive", POLL) + post_bytes("Stats", b'{"queue":"q"}', "Connection: close")
        )
        eventually(lambda: clock.waiting == 1)
        api.send("q", b"hi")
        answer = read_all(connection)
    assert answer.index(b'"messages"') < answer.index(b'"locked":1')


def test_stopping_the_broker_ends_polls_with_nothing(mq: Embedded, clock: ManualClock) -> None:
    with serving(mq, tokens=[TOKEN]) as url:
        api = Api(url)
        api.ok("CreateQueue", name="q")
        poll = InThread(lambda: api.post("Receive", POLL))
        eventually(lambda: clock.waiting == 1)
    reply = poll.result()
    assert (reply.status, reply.json) == (200, {"messages": []})
    assert clock.waiting == 0


def test_closing_the_queue_ends_polls_with_nothing_and_the_broker(clock: ManualClock) -> None:
    with mqlite.open(":memory:", clock=clock) as mq, serving(mq, tokens=[TOKEN]) as url:
        api = Api(url)
        api.ok("CreateQueue", name="q")
        poll = InThread(lambda: api.post("Receive", POLL))
        eventually(lambda: clock.waiting == 1)
        mq.close()
        reply = poll.result()
        assert (reply.status, reply.json) == (200, {"messages": []})


def test_too_many_polls_are_refused(mq: Embedded, clock: ManualClock) -> None:
    with serving(mq, tokens=[TOKEN], limits=Limits(polls=1)) as url:
        api = Api(url)
        api.ok("CreateQueue", name="q")
        poll = InThread(lambda: api.receive("q", wait_time_ms=20_000))
        eventually(lambda: clock.waiting == 1)
        reply = api.post("Receive", POLL)
        assert (reply.status, reply.code) == (503, "unavailable")
        assert api.receive("q") == []
        api.send("q", b"hi")
        assert poll.result()[0]["seq_number"] == 1


def test_waiting_polls_are_not_pending_work(mq: Embedded, clock: ManualClock) -> None:
    with serving(mq, tokens=[TOKEN], limits=Limits(requests=8)) as url:
        api = Api(url)
        api.ok("CreateQueue", name="q")
        polls = []
        for count in range(20):
            eventually(lambda: api.post("Stats", {"queue": "q"}).status == 200)
            polls.append(InThread(lambda: api.receive("q", wait_time_ms=20_000)))
            eventually(lambda count=count: clock.waiting > count)
        api.send("q", *[b"x"] * 20)
        assert sum(len(poll.result()) for poll in polls) == 20

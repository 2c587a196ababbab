"""Single sends of many tasks in few requests, each with a result of its own."""

from __future__ import annotations

import asyncio
import base64
import json
import select
import threading
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import pytest

import mqlite
from client import stub
from client.peer import SENT, Peer, answer, scripted
from mqlite.client import coalescing
from mqlite.errors import (
    Closed,
    DedupConflict,
    GroupRequired,
    InvalidArgument,
    MessageTooLarge,
    MqliteError,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)
from patience import eventually

Work = Callable[[mqlite.AsyncClient], Coroutine[Any, Any, Any]]
LATER = datetime(2100, 1, 1, tzinfo=UTC)


class Store:
    """A broker that numbers what it is sent. `refuse` says what is wrong with a message;
    `old` brokers do not know `results`."""

    def __init__(
        self, refuse: Callable[[bytes], MqliteError | None] = lambda _: None, *, old: bool = False
    ) -> None:
        self.refuse = refuse
        self.old = old
        self.stored: list[bytes] = []

    def __call__(self, method: str, body: dict[str, Any]) -> stub.Answer:
        if self.old and "results" in body:
            return 400, {"code": "invalid_argument", "message": 'json: unknown field "results"'}
        slots: list[dict[str, Any]] = []
        for message in body["messages"]:
            text = message.get("body", "").encode()
            problem = self.refuse(text)
            if problem is not None and not isinstance(problem, DedupConflict):
                return problem.status, error(problem)
            if problem is None:
                self.stored.append(text)
                slots.append({"seq_number": len(self.stored)})
            elif len(body["messages"]) == 1 and not body.get("results"):
                return problem.status, error(problem)
            else:
                slots.append(error(problem))
        answered: dict[str, Any] = {"seq_numbers": [slot.get("seq_number", 0) for slot in slots]}
        if body.get("results"):
            answered["results"] = slots
        return 200, answered


def error(problem: MqliteError) -> dict[str, str]:
    return {"code": problem.code, "message": str(problem)}


def bad(wrong: bytes, problem: MqliteError) -> Callable[[bytes], MqliteError | None]:
    return lambda text: problem if text == wrong else None


def run(behaviour: stub.Behaviour, work: Work) -> tuple[Any, list[list[str]]]:
    """What the work answered, and the bodies of each request."""

    async def main(url: str) -> Any:
        async with await mqlite.connect_async(url) as mq:
            return await work(mq)

    with stub.serving(behaviour) as broker:
        answered = asyncio.run(main(broker.url))
    bodies = [[m.get("body", "") for m in request.body["messages"]] for request in broker.requests]
    return answered, bodies


async def all_of(*sends: Coroutine[Any, Any, int]) -> list[int | BaseException]:
    return await asyncio.gather(*sends, return_exceptions=True)


def text(number: int) -> bytes:
    """A body whose base64 is readable."""
    return b"%03d" % number


def test_sends_of_one_moment_are_one_request_with_a_number_each() -> None:
    numbers, requests = run(Store(), lambda mq: all_of(*(mq.send("q", text(n)) for n in range(64))))
    assert numbers == list(range(1, 65))
    assert [len(bodies) for bodies in requests] == [64]


def test_a_send_alone_is_an_ordinary_request() -> None:
    with scripted(lambda peer: peer.serve(SENT)) as peer:

        async def main() -> None:
            async with await mqlite.connect_async(peer.url) as mq:
                assert await mq.send("q", b"x") == 1

        asyncio.run(main())
    assert peer.requests == [{"queue": "q", "messages": [{"body": "eA=="}]}]


def test_only_equal_destinations_share_a_request() -> None:
    _, requests = run(
        Store(),
        lambda mq: all_of(
            mq.send("q", text(0)),
            mq.send("other", text(1)),
            mq.send("q", text(2), ttl=5),
            mq.send("q", text(3), at=LATER),
            mq.send("q", text(4)),
        ),
    )
    assert sorted(len(bodies) for bodies in requests) == [1, 1, 1, 2]


def test_requests_are_bounded_in_messages() -> None:
    _, requests = run(Store(), lambda mq: all_of(*(mq.send("q", text(n)) for n in range(600))))
    assert sorted(len(bodies) for bodies in requests) == [88, 256, 256]


def test_requests_are_bounded_in_bytes() -> None:
    big = bytes(300_000)
    _, requests = run(Store(), lambda mq: all_of(*(mq.send("q", big) for _ in range(5))))
    assert sorted(len(bodies) for bodies in requests) == [1, 2, 2]
    huge = bytes(3_000_000)
    _, requests = run(
        Store(), lambda mq: all_of(mq.send("q", huge), mq.send("q", b"x"), mq.send("q", huge))
    )
    assert sorted(len(bodies) for bodies in requests) == [1, 1, 1]


def test_few_requests_are_under_way_at_once() -> None:
    """While they are, what comes gathers for the next."""
    seen: list[int] = []
    gathered = threading.Event()

    def script(peer: Peer) -> None:
        connections = [peer.accept() for _ in range(coalescing.MOST_REQUESTS)]
        for connection in connections:
            peer.read(connection)
        assert gathered.wait(30)
        for connection, body in zip(connections, list(peer.bodies), strict=True):
            connection.sendall(numbered(body))
        while sum(map(count, peer.bodies)) < 300 + len(connections):
            for connection in connections:
                if readable(connection):
                    peer.read(connection)
                    connection.sendall(numbered(peer.bodies[-1]))

    async def main(peer: Peer) -> None:
        async with await mqlite.connect_async(peer.url) as mq:
            sends = []
            for begun in range(coalescing.MOST_REQUESTS):
                sends.append(asyncio.create_task(mq.send("q", b"early")))
                await asyncio.to_thread(eventually, lambda n=begun: len(peer.connections) > n)
            sends += [asyncio.create_task(mq.send("q", text(n))) for n in range(300)]
            for _ in range(5):
                await asyncio.sleep(0)
            seen.append(len(mq._coalescer._tasks))
            gathered.set()
            await asyncio.gather(*sends)

    with scripted(script) as peer:
        asyncio.run(main(peer))
    assert seen == [coalescing.MOST_REQUESTS]
    assert sorted(map(count, peer.bodies))[-1] == 256


def count(body: bytes) -> int:
    return len(json.loads(body)["messages"])


def numbered(body: bytes) -> bytes:
    return answer({"seq_numbers": list(range(1, count(body) + 1))})


def readable(connection: Any) -> bool:
    return bool(select.select([connection], [], [], 0.01)[0])


def test_order_within_a_task_is_kept() -> None:
    store = Store()

    async def work(mq: mqlite.AsyncClient) -> None:
        async def one(task: int) -> None:
            for number in range(20):
                await mq.send("q", b"%01d%02d" % (task, number))

        await asyncio.gather(*map(one, range(8)))

    run(store, work)
    sent = [base64.b64decode(body) for body in store.stored]
    assert len(sent) == 160
    for task in range(8):
        own = [body for body in sent if body[:1] == b"%d" % task]
        assert own == sorted(own)


def test_a_conflict_is_its_senders_only() -> None:
    conflict = DedupConflict("another body")
    numbers, requests = run(
        Store(bad(b"MDAx", conflict)),
        lambda mq: all_of(*(mq.send("q", text(n), message_id=f"m{n}") for n in range(3))),
    )
    assert len(requests) == 1
    assert (numbers[0], numbers[2]) == (1, 2)
    assert type(numbers[1]) is DedupConflict
    assert str(numbers[1]) == "another body"


@pytest.mark.parametrize(
    "problem",
    [GroupRequired("no group"), MessageTooLarge("too large"), InvalidArgument("never")],
)
def test_after_the_refusal_of_all_each_is_sent_again_alone(problem: MqliteError) -> None:
    numbers, requests = run(
        Store(bad(b"MDAx", problem)), lambda mq: all_of(*(mq.send("q", text(n)) for n in range(4)))
    )
    assert [len(bodies) for bodies in requests] == [4, 1, 1, 1, 1]
    assert [type(number) for number in numbers] == [int, type(problem), int, int]


@pytest.mark.parametrize(
    "problem",
    [
        NotFound("no such queue"),
        Unavailable("busy", reason="overloaded"),
        OutcomeUnknown("lost it"),
        mqlite.Unauthenticated("who are you?"),
    ],
)
def test_what_is_true_of_all_is_told_to_all(problem: MqliteError) -> None:
    outcomes, requests = run(
        lambda method, body: (problem.status, error(problem)),
        lambda mq: all_of(*(mq.send("q", text(n)) for n in range(4))),
    )
    assert len(requests) == 1
    assert [type(outcome) for outcome in outcomes] == [type(problem)] * 4


def test_a_lost_answer_is_unknown_to_all_and_nothing_is_sent_again() -> None:
    async def main(url: str) -> list[Any]:
        async with await mqlite.connect_async(url) as mq:
            return await all_of(*(mq.send("q", text(n)) for n in range(4)))

    with scripted(lambda peer: peer.cut()) as peer:
        outcomes = asyncio.run(main(peer.url))
    assert [type(outcome) for outcome in outcomes] == [OutcomeUnknown] * 4
    assert len(peer.bodies) == 1


def test_an_older_broker_is_asked_for_results_once() -> None:
    async def work(mq: mqlite.AsyncClient) -> list[Any]:
        first = await all_of(*(mq.send("q", text(n)) for n in range(3)))
        return first + await all_of(*(mq.send("q", text(n)) for n in range(3, 6)))

    numbers, requests = run(Store(old=True), work)
    assert numbers == [1, 2, 3, 4, 5, 6]
    assert [len(bodies) for bodies in requests] == [3, 1, 1, 1, 3]


def test_with_an_older_broker_a_message_with_an_id_travels_alone() -> None:
    """A conflict would be a 0, which a topic also answers."""
    conflict = DedupConflict("another body")

    async def work(mq: mqlite.AsyncClient) -> list[Any]:
        await all_of(mq.send("q", b"a"), mq.send("q", b"b"))
        return await all_of(
            mq.send("q", text(0)),
            mq.send("q", text(1)),
            mq.send("q", text(2), message_id="m"),
            mq.send("q", text(3)),
            mq.send("q", text(4)),
        )

    numbers, requests = run(Store(bad(b"MDAy", conflict), old=True), work)
    assert [type(number) for number in numbers] == [int, int, DedupConflict, int, int]
    assert sorted(len(bodies) for bodies in requests[3:]) == [1, 2, 2]


def test_another_field_an_older_broker_lacks_concerns_its_sender_only() -> None:
    store = Store()

    def behaviour(method: str, body: dict[str, Any]) -> stub.Answer:
        if any("priority" in message for message in body["messages"]):
            return 400, {"code": "invalid_argument", "message": "unknown field `priority`"}
        return store(method, body)

    async def work(mq: mqlite.AsyncClient) -> list[Any]:
        first = await all_of(mq.send("q", b"a"), mq.send("q", b"b", priority=1))
        return first + await all_of(mq.send("q", b"c"), mq.send("q", b"d"))

    outcomes, requests = run(behaviour, work)
    assert isinstance(outcomes.pop(1), mqlite.Unsupported)
    assert outcomes == [1, 2, 3]
    assert [len(bodies) for bodies in requests] == [2, 1, 1, 2]


def test_a_bad_argument_is_refused_before_it_joins_the_others() -> None:
    outcomes, requests = run(
        Store(),
        lambda mq: all_of(
            mq.send("q", text(0)),
            mq.send("q", text(1), priority=5000),
            mq.send("q", 5),  # type: ignore[arg-type]
            mq.send("q", text(3), subject="\udcff"),
            mq.send("q", text(4)),
        ),
    )
    assert [isinstance(outcome, InvalidArgument) for outcome in outcomes] == [0, 1, 1, 1, 0]
    assert requests == [["MDAw", "MDA0"]]


@pytest.mark.parametrize("queue", ["\udcff", 5, None])
def test_a_name_that_is_no_text(queue: Any) -> None:
    outcomes, requests = run(Store(), lambda mq: all_of(mq.send(queue, b"a"), mq.send(queue, b"b")))
    assert [type(outcome) for outcome in outcomes] == [InvalidArgument] * 2
    assert requests == []


def test_a_send_that_is_cancelled_before_its_request_is_not_sent() -> None:
    async def work(mq: mqlite.AsyncClient) -> Any:
        sends = [asyncio.create_task(mq.send("q", text(n))) for n in range(3)]
        await asyncio.sleep(0)
        sends[1].cancel()
        return await all_of(*sends)  # type: ignore[arg-type]

    outcomes, requests = run(Store(), work)
    assert [type(outcome) for outcome in outcomes] == [int, asyncio.CancelledError, int]
    assert requests == [["MDAw", "MDAy"]]


def test_nothing_is_kept_of_destinations_that_are_done_with() -> None:
    async def work(mq: mqlite.AsyncClient) -> None:
        for ttl in range(1, 20):
            send = asyncio.create_task(mq.send("q", b"x", ttl=ttl))
            await asyncio.sleep(0)
            if ttl % 2:
                send.cancel()
            await asyncio.wait([send])
        await asyncio.sleep(0)
        assert mq._coalescer._lanes == {}

    run(Store(), work)


def test_a_send_that_is_cancelled_later_disturbs_nobody() -> None:
    async def main(peer: Peer) -> list[Any]:
        async with await mqlite.connect_async(peer.url) as mq:
            sends = [asyncio.create_task(mq.send("q", text(n))) for n in range(3)]
            await asyncio.to_thread(eventually, lambda: bool(peer.bodies))
            sends[1].cancel()
            await asyncio.sleep(0)
            release.set()
            return await all_of(*sends)  # type: ignore[arg-type]

    release = threading.Event()

    def script(peer: Peer) -> None:
        connection = peer.accept()
        peer.read(connection)
        assert release.wait(30)
        connection.sendall(answer({"seq_numbers": [1, 2, 3]}))

    with scripted(script) as peer:
        outcomes = asyncio.run(main(peer))
    assert [outcomes[0], outcomes[2]] == [1, 3]
    assert isinstance(outcomes[1], asyncio.CancelledError)


def test_closing_sends_what_was_accepted_and_refuses_the_rest() -> None:
    async def work(mq: mqlite.AsyncClient) -> Any:
        sends = [asyncio.create_task(mq.send("q", text(n))) for n in range(3)]
        await asyncio.sleep(0)
        await mq.close()
        with pytest.raises(Closed):
            await mq.send("q", b"late")
        return await all_of(*sends)  # type: ignore[arg-type]

    numbers, _ = run(Store(), work)
    assert numbers == [1, 2, 3]

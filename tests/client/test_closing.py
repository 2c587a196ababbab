"""Closing a client, and sharing one between threads, loops and processes."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any

import pytest

import mqlite
from client import stub
from client.conftest import Connect
from client.peer import STATS, Peer, scripted
from forking import forks
from mqlite.errors import Closed, MqliteError, OutcomeUnknown
from patience import eventually, start


class Stalled:
    """A broker that answers only when it is released."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.reached = threading.Event()
        self.release = threading.Event()

    def __call__(self, method: str, body: dict[str, Any]) -> stub.Answer:
        self.reached.set()
        assert self.release.wait(30)
        return 200, self.answer


def test_a_closed_client(connect: Connect) -> None:
    mq = connect("http://127.0.0.1:1")
    mq.close()
    with pytest.raises(Closed):
        mq.stats("q")
    mq.close()


def test_closing_breaks_off_a_long_poll(connect: Connect) -> None:
    stalled = Stalled({"messages": []})
    with stub.serving(stalled) as broker:
        mq = connect(broker.url)
        poll = start(mq.receive, "q", wait="20s")
        assert stalled.reached.wait(30)
        mq.close()
        with pytest.raises(Closed):
            poll.result(30)
        stalled.release.set()
    assert broker.methods == ["Receive"]


def test_closing_waits_for_what_else_is_under_way(connect: Connect) -> None:
    stalled = Stalled({"moved": 3})
    with stub.serving(stalled) as broker:
        mq = connect(broker.url)
        redrive = start(mq.redrive, "q")
        assert stalled.reached.wait(30)
        closing = start(mq.close)
        refused = threading.Event()
        while not refused.is_set():
            try:
                start(mq.stats, "q").result(0.01)
            except Closed:
                refused.set()
            except TimeoutError:
                continue
        assert not closing.done()
        stalled.release.set()
        assert redrive.result(30).count == 3
        closing.result(30)


def test_closing_ends_a_pause(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mqlite.client.discipline, "FIRST_PAUSE", 60.0)
    cut = threading.Event()

    def script(peer: Peer) -> None:
        peer.cut()
        cut.set()

    with scripted(script) as peer:
        mq = connect(peer.url, retry_for="10m")
        settle = start(mq.complete, "q", 1, "t")
        assert cut.wait(30)
        mq.close()
        with pytest.raises((OutcomeUnknown, Closed)):
            settle.result(30)


@pytest.mark.parametrize("kind", ["sync"])
def test_closing_breaks_off_a_long_poll_that_is_still_connecting(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    connecting, go_on = threading.Event(), threading.Event()
    really = HTTPConnection.connect

    def slowly(connection: HTTPConnection) -> None:
        connecting.set()
        assert go_on.wait(30)
        really(connection)

    monkeypatch.setattr(HTTPConnection, "connect", slowly)
    with stub.serving(stub.empty) as broker:
        mq = connect(broker.url)
        poll = start(mq.receive, "q", wait="20s")
        assert connecting.wait(30)
        closing = start(mq.close)
        eventually(mq._connections._closed.is_set)  # type: ignore[attr-defined]
        go_on.set()
        with pytest.raises(Closed):
            poll.result(30)
        closing.result(30)
    assert broker.requests == []


@pytest.mark.parametrize("kind", ["sync"])
@forks
def test_a_forked_child_has_connections_of_its_own(connect: Connect) -> None:
    def script(peer: Peer) -> None:
        parent = peer.serve(STATS)
        peer.serve(STATS).close()
        peer.read(parent)
        parent.sendall(STATS)

    with scripted(script) as peer:
        mq = connect(peer.url)
        mq.stats("q")
        child = os.fork()
        if child == 0:
            try:
                mq.stats("q")
                os._exit(0)
            except BaseException:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        mq.stats("q")
    assert len(peer.connections) == 2


@pytest.mark.parametrize("kind", ["sync"])
@forks
def test_a_fork_does_not_inherit_what_other_threads_hold(connect: Connect) -> None:
    stalled = Stalled({"messages": []})
    with stub.serving(stalled) as broker:
        mq = connect(broker.url)
        poll = start(mq.receive, "q", wait="20s")
        assert stalled.reached.wait(30)
        child = os.fork()
        if child == 0:
            mq.close()  # has nothing to wait for
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        stalled.release.set()
        assert poll.result(30) == []


def in_a_loop(work: Callable[[], Any]) -> Any:
    return asyncio.run(work())


def test_an_async_client_belongs_to_one_loop() -> None:
    with stub.serving(stub.empty) as broker:
        client = mqlite.AsyncClient(broker.url)  # may be made anywhere

        async def first() -> None:
            await client.list_queues()
            with pytest.raises(MqliteError, match="another event loop"):
                await asyncio.to_thread(in_a_loop, client.list_queues)
            with pytest.raises(MqliteError, match="another event loop"):
                await asyncio.to_thread(in_a_loop, lambda: client.send("q", b"x"))
            await client.close()

        asyncio.run(first())
    assert broker.methods == ["ListQueues"]


def test_an_async_client_lends_itself_to_threads() -> None:
    with stub.serving(stub.empty) as broker:

        async def main() -> None:
            url = broker.url.replace("http://", "mqlite://tok@")
            async with await mqlite.connect_async(url, timeout=7) as client:
                threads = client.blocking()
                assert threads.base_url == client.base_url
                assert threads.clock is client.clock
                await asyncio.to_thread(threads.list_queues)
                threads.close()
                assert await client.list_queues() == []

        asyncio.run(main())
    assert [request.token for request in broker.requests] == ["Bearer tok"] * 2


def test_a_cancelled_call_ends_its_request() -> None:
    gone = threading.Event()

    def script(peer: Peer) -> None:
        peer.hang()
        gone.set()

    async def main(url: str) -> None:
        async with await mqlite.connect_async(url) as client:
            poll = asyncio.create_task(client.receive("q", wait=20))
            await asyncio.to_thread(eventually, lambda: bool(peer.bodies))
            poll.cancel()
            with pytest.raises(asyncio.CancelledError):
                await poll
            assert await asyncio.to_thread(gone.wait, 30)

    with scripted(script) as peer:
        asyncio.run(main(peer.url))


def test_a_blocked_loop_notices_what_was_closed_meanwhile() -> None:
    closed = threading.Event()

    def script(peer: Peer) -> None:
        peer.serve(STATS).close()
        closed.set()
        peer.serve(STATS)

    async def main(url: str) -> None:
        async with await mqlite.connect_async(url, retry_for=0) as client:
            await client.stats("q")
            assert closed.wait(30)  # the loop sees nothing while it waits here
            client._session._busy_at -= 1  # as if it had been a second
            await client.stats("q")

    with scripted(script) as peer:
        asyncio.run(main(peer.url))


def test_the_async_client_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqlite.client.session.aiohttp", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[client\]' in a clone"):
        mqlite.AsyncClient("http://h")

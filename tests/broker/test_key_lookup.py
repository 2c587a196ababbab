"""What the lookup of an access key costs, and whom it answers."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from broker.keying import ADMIN, QUEUE, create, status
from broker.support import TOKEN, TOKENS, Api
from mqlite.broker.managed import ManagedKeys
from mqlite.broker.rights import ADMINISTRATOR, rights_of
from mqlite.broker.serve import serving
from mqlite.embedded import Embedded
from mqlite.engine import keys
from mqlite.errors import Unauthenticated, Unavailable
from mqlite.keys import generate_token
from patience import PATIENCE_S


def test_one_lookup_for_a_request_and_none_for_what_is_configured_or_no_key(
    mq: Embedded, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []
    look_up = keys.look_up

    def counted(digests: list[bytes]) -> object:
        asked.extend(digests)
        return look_up(digests)

    monkeypatch.setattr(keys, "look_up", counted)
    token = create(mq, "manage").token
    for _ in range(3):
        assert status(url, token, f"{ADMIN}ListQueues") == 200
    assert asked == [hashlib.sha256(token.encode()).digest()] * 3
    for other in (TOKEN, "mqk_wrong", "mqk_" + "g" * 64, token[:-1], "x" * 100_000):
        status(url, other)
    assert Api(url, token).request("GET", "/healthz").status == 200
    assert len(asked) == 3


class Slow:
    """A core whose lookups wait until they are let go."""

    def __init__(self, mq: Embedded) -> None:
        self.store = self
        self.lookups = 0
        self.failing = False
        self.read = asyncio.Event()
        self.gate = asyncio.Event()
        self._seek = mq.core.store.seek_async

    async def seek_async(self, operation: Any) -> Any:
        self.lookups += 1
        found = await self._seek(operation)
        self.read.set()
        await self.gate.wait()
        if self.failing:
            raise Unavailable("the storage failed", reason="storage")
        return found


def looked_up(slow: Any) -> Callable[[str], asyncio.Task[Any]]:
    managed = ManagedKeys(slow)

    async def rights(token: str) -> object:
        found, _ = await managed.look_up(hashlib.sha256(token.encode()).digest())
        return found

    def start(token: str) -> asyncio.Task[Any]:
        return asyncio.ensure_future(rights(token))

    return start


async def begun(slow: Slow) -> None:
    """Until the first lookup has begun, and every task that was started has asked."""
    give_up = monotonic() + PATIENCE_S
    while not slow.lookups:
        assert monotonic() < give_up, "it never happened"
        await asyncio.sleep(0.001)
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def test_requests_of_one_moment_share_a_lookup_and_each_gets_its_own_answer(mq: Embedded) -> None:
    send, manage = create(mq, "send").token, create(mq, "manage").token

    async def run() -> None:
        slow = Slow(mq)
        start = looked_up(slow)
        first = start(send)
        await begun(slow)
        later = [start(token) for token in (send, manage, generate_token()) * 50]
        await begun(slow)
        assert slow.lookups == 1
        slow.gate.set()
        answers = await asyncio.gather(first, *later, return_exceptions=True)
        assert slow.lookups == 2
        assert answers[0] == rights_of(["send"])
        for at in range(1, 151, 3):
            assert answers[at] == rights_of(["send"])
            assert answers[at + 1] == ADMINISTRATOR
            assert isinstance(answers[at + 2], Unauthenticated)

    asyncio.run(run())


def test_a_request_is_never_answered_by_a_lookup_that_began_before_it(mq: Embedded) -> None:
    made = create(mq, "send")

    async def run() -> None:
        slow = Slow(mq)
        start = looked_up(slow)
        before = start(made.token)
        await begun(slow)
        await slow.read.wait()
        await asyncio.to_thread(mq.revoke_key, made.key.id)
        after = start(made.token)
        slow.gate.set()
        assert await before == rights_of(["send"])
        with pytest.raises(Unauthenticated):
            await after

    asyncio.run(run())


def test_one_that_goes_away_disturbs_no_other(mq: Embedded) -> None:
    token = create(mq, "send").token

    async def run() -> None:
        slow = Slow(mq)
        start = looked_up(slow)
        gone, stays = start(token), start(token)
        await begun(slow)
        gone.cancel()
        await begun(slow)
        slow.gate.set()
        assert await stays == rights_of(["send"])
        assert gone.cancelled()
        assert await start(token) == rights_of(["send"])

    asyncio.run(run())


def test_after_a_lookup_that_failed_the_next_one_is_made(mq: Embedded) -> None:
    token = create(mq, "send").token

    async def run() -> None:
        slow = Slow(mq)
        slow.gate.set()
        start = looked_up(slow)
        slow.failing = True
        for outcome in await asyncio.gather(start(token), start(token), return_exceptions=True):
            assert isinstance(outcome, Unavailable)
        slow.failing = False
        assert await start(token) == rights_of(["send"])

    asyncio.run(run())


def test_a_lookup_waits_neither_for_the_writer_nor_behind_a_scan(
    file_mq: Embedded, tmp_path: Path
) -> None:
    file_mq.create_queue("q")
    token = create(file_mq, "send").token
    reader = file_mq.core.store._reader
    assert reader is not None
    blocked, go_on = threading.Event(), threading.Event()

    def scan(_: sqlite3.Connection) -> None:
        blocked.set()
        go_on.wait(PATIENCE_S)

    with serving(file_mq, tokens=TOKENS) as url, file_mq.transaction() as tx:
        tx.execute("CREATE TABLE mine (x)")
        scanning = threading.Thread(target=reader.look, args=(scan, monotonic() + PATIENCE_S))
        scanning.start()
        assert blocked.wait(PATIENCE_S)
        try:
            assert status(url, token, f"{QUEUE}Stats") == 403
            assert status(url, generate_token()) == 401
        finally:
            go_on.set()
            scanning.join()

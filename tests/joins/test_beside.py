"""An ORM with a timeout of 5 s beside a saturated queue is never told that the file is locked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from time import monotonic, sleep

import pytest

import mqlite

from .helpers import Running
from .modes import Caller, alchemy_caller, django_caller, session_caller, sqlite3_caller

SENDERS = 256
SECONDS = 3.0
CALLERS = (
    partial(alchemy_caller, configured=True),
    partial(session_caller, configured=False),
    partial(django_caller, configured=True),
    partial(sqlite3_caller, timeout=5.0),
)


def write(connect: partial[Caller], path: Path, until: float, pause: float) -> int:
    written = 0
    with ExitStack() as resources:
        caller = connect(path, resources)
        while monotonic() < until or not written:
            with caller.transaction():
                caller.order(written)
            written += 1
            sleep(pause)
    return written


async def saturate(path: Path, stop: threading.Event, started: threading.Event) -> int:
    async with await mqlite.open_async(path) as mq:
        await mq.create_queue("q")
        async with mq.transaction() as tx:
            await tx.execute("CREATE TABLE orders (id INTEGER)")
        started.set()

        async def keep_sending() -> int:
            sent = 0
            while not stop.is_set():
                # A slow disk may hold up the queue; what its callers are told is not the matter.
                with suppress(mqlite.Unavailable):
                    await mq.send("q", b"x" * 200)
                    sent += 1
            return sent

        sent = sum(await asyncio.gather(*(keep_sending() for _ in range(SENDERS))))
        assert (await mq.stats("q")).total == sent
        return sent


def beside(path: Path, callers: Sequence[partial[Caller]], pause: float) -> list[int]:
    """How often each caller wrote. Any "database is locked" is raised."""
    stop, started = threading.Event(), threading.Event()
    sending = Running(lambda: asyncio.run(saturate(path, stop, started)))
    try:
        assert started.wait(20)
        until = monotonic() + SECONDS
        writing = [Running(partial(write, connect, path, until, pause)) for connect in callers]
        written = [writer.result() for writer in writing]
    finally:
        stop.set()
    assert sending.result() > SENDERS
    return written


def test_busy_callers_get_their_turn(path: Path) -> None:
    assert min(beside(path, CALLERS, pause=0.0)) > 1


@pytest.mark.parametrize("connect", CALLERS, ids=["sqlalchemy", "session", "django", "sqlite3"])
def test_a_caller_that_was_long_silent_gets_its_turn(path: Path, connect: partial[Caller]) -> None:
    assert beside(path, [connect], pause=1.3)[0] >= 1

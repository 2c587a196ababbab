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
from patience import start

from .modes import Caller, alchemy_caller, django_caller, session_caller, sqlite3_caller

SENDERS = 256
SECONDS = 3.0
CALLERS = (
    partial(alchemy_caller, configured=True),
    partial(session_caller, configured=False),
    partial(django_caller, configured=True),
    partial(sqlite3_caller, timeout=5.0),
)


def write(connect: partial[Caller], path: Path, until: float, least: int, pause: float) -> None:
    written = 0
    with ExitStack() as resources:
        caller = connect(path, resources)
        while monotonic() < until or written < least:
            with caller.transaction():
                caller.order(written)
            written += 1
            sleep(pause)


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


def beside(path: Path, callers: Sequence[partial[Caller]], *, least: int, pause: float) -> None:
    """Let callers write for some seconds, and each at least that often: one that gets no turn
    is told "database is locked", which is raised."""
    stop, started = threading.Event(), threading.Event()
    sending = start(lambda: asyncio.run(saturate(path, stop, started)))
    try:
        assert started.wait(20)
        until = monotonic() + SECONDS
        for writer in [
            start(partial(write, connect, path, until, least, pause)) for connect in callers
        ]:
            writer.result()
    finally:
        stop.set()
    assert sending.result() > SENDERS


def test_busy_callers_get_their_turn(path: Path) -> None:
    beside(path, CALLERS, least=2, pause=0.0)


@pytest.mark.parametrize("connect", CALLERS, ids=["sqlalchemy", "session", "django", "sqlite3"])
def test_a_caller_that_was_long_silent_gets_its_turn(path: Path, connect: partial[Caller]) -> None:
    beside(path, [connect], least=2, pause=1.3)

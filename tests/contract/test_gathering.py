"""Single sends of one event loop that become one operation."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import mqlite
from mqlite.embedded.core import Core
from mqlite.engine.steps import Operation

SENDERS = 10


def test_nobody_waits_for_others_because_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is sent again by itself, and none after another: a wait for the writer, which is
    bounded, would be as many waits."""
    at_once: list[int] = []
    waiting = 0
    run_async = Core.run_async

    async def count(
        core: Core,
        operation: Operation[object],
        abandoned: Callable[[object], object] | None = None,
    ) -> object:
        nonlocal waiting
        waiting += 1
        at_once.append(waiting)
        try:
            return await run_async(core, operation, abandoned)
        finally:
            waiting -= 1

    async def send() -> list[int | BaseException]:
        async with await mqlite.open_async(":memory:") as mq:
            await mq.create_queue("q", ordering_mode="group_fifo")
            await mq.send("q", b"the name is known now", group_id="g")
            monkeypatch.setattr(Core, "run_async", count)
            groups = ["g"] * (SENDERS - 1) + [""]
            sends = [mq.send("q", b"x", group_id=group) for group in groups]
            return await asyncio.gather(*sends, return_exceptions=True)

    *sent, refused = asyncio.run(send())
    assert sent == list(range(2, SENDERS + 1))
    assert isinstance(refused, mqlite.GroupRequired)
    assert at_once == [1, *range(1, SENDERS + 1)]


def test_the_queue_goes_on_when_somebody_cancels_every_task() -> None:
    async def send() -> list[int | BaseException]:
        async with await mqlite.open_async(":memory:") as mq:
            await mq.create_queue("q")
            await mq.send("q", b"the name is known now")
            sends = [asyncio.create_task(mq.send("q", b"x")) for _ in range(SENDERS)]
            await asyncio.sleep(0)  # now they wait for a task that has not begun
            for task in asyncio.all_tasks() - {asyncio.current_task(), sends[0]}:
                task.cancel()
            ended = await asyncio.gather(*sends, return_exceptions=True)
            return [*ended, await mq.send("q", b"after")]

    *ended, after = asyncio.run(send())
    assert all(isinstance(each, asyncio.CancelledError) for each in ended)
    assert after == 2


def test_what_is_sent_when_every_task_is_cancelled() -> None:
    """As `asyncio.run` does it at its end, when tasks have something to say about theirs."""

    async def sender(mq: mqlite.AsyncEmbedded) -> int:
        try:
            return await mq.send("q", b"x")
        except asyncio.CancelledError:
            return await mq.send("q", b"the end")

    async def send() -> list[int]:
        async with await mqlite.open_async(":memory:") as mq:
            await mq.create_queue("q")
            await mq.send("q", b"the name is known now")
            senders = [asyncio.create_task(sender(mq)) for _ in range(SENDERS)]
            await asyncio.sleep(0)
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            return await asyncio.gather(*senders)

    assert sorted(asyncio.run(send())) == list(range(2, SENDERS + 2))


def without_context(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any]) -> Any:
    """A task factory from before Python 3.11."""
    return asyncio.Task(work, loop=loop)


TASK_FACTORIES: list[Any] = [without_context]
if sys.version_info >= (3, 12):
    TASK_FACTORIES.append(asyncio.eager_task_factory)


@pytest.mark.parametrize("factory", TASK_FACTORIES)
def test_a_loop_that_makes_tasks_in_its_own_way(
    factory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations = 0
    run_async = Core.run_async

    async def count(core: Core, *arguments: Any) -> object:
        nonlocal operations
        operations += 1
        return await run_async(core, *arguments)

    async def send() -> list[int]:
        async with await mqlite.open_async(":memory:") as mq:
            await mq.create_queue("q")
            await mq.send("q", b"the name is known now")
            asyncio.get_running_loop().set_task_factory(factory)
            monkeypatch.setattr(Core, "run_async", count)
            return await asyncio.gather(*[mq.send("q", b"x") for _ in range(SENDERS)])

    assert asyncio.run(send()) == list(range(2, SENDERS + 2))
    assert operations == 1

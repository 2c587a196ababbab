"""What opening and closing promise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

import mqlite
from contract.looks import bodies, counts, one
from contract.ways import Blocking, World
from mqlite.api import MQ, AsyncMQ
from mqlite.clock import ManualClock
from patience import eventually, start

IN_PROCESS = pytest.mark.parametrize("way", ["sync", "async"])
SYNC = pytest.mark.parametrize("way", ["sync"])

CALLS: dict[str, Callable[[MQ], object]] = {
    "create_queue": lambda mq: mq.create_queue("q"),
    "delete_queue": lambda mq: mq.delete_queue("q"),
    "pause_queue": lambda mq: mq.pause_queue("q"),
    "list_queues": lambda mq: mq.list_queues(),
    "subscribe": lambda mq: mq.subscribe("t", "s"),
    "unsubscribe": lambda mq: mq.unsubscribe("t", "s"),
    "list_subscriptions": lambda mq: mq.list_subscriptions(),
    "send": lambda mq: mq.send("q", b""),
    "send_batch": lambda mq: mq.send_batch("q", [b"", b""]),
    "cancel": lambda mq: mq.cancel("q", 1),
    "receive": lambda mq: mq.receive("q"),
    "a long poll": lambda mq: mq.receive("q", wait=20),
    "receive_deferred": lambda mq: mq.receive_deferred("q", [1]),
    "complete": lambda mq: mq.complete("q", 1, "t"),
    "complete_batch": lambda mq: mq.complete_batch("q", [(1, "t")]),
    "abandon": lambda mq: mq.abandon("q", 1, "t"),
    "reject": lambda mq: mq.reject("q", 1, "t"),
    "release": lambda mq: mq.release("q", 1, "t"),
    "defer": lambda mq: mq.defer("q", 1, "t"),
    "renew": lambda mq: mq.renew("q", 1, "t"),
    "renew_batch": lambda mq: mq.renew_batch("q", [(1, "t")]),
    "peek": lambda mq: mq.peek("q"),
    "stats": lambda mq: mq.stats("q"),
    "redrive": lambda mq: mq.redrive("q"),
    "purge": lambda mq: mq.purge("q"),
    "status": lambda mq: mq.status(),
}


@IN_PROCESS
@pytest.mark.parametrize("call", CALLS)
def test_every_call_after_close_is_refused(world: World, call: str) -> None:
    world.mq.create_queue("q")
    world.mq.close()
    with pytest.raises(mqlite.Closed) as refusal:
        CALLS[call](world.mq)
    assert refusal.value.reason == "closing"


@pytest.mark.parametrize("way", ["http", "http_async"])
@pytest.mark.parametrize("call", CALLS)
def test_a_closed_client_refuses_every_call(world: World, call: str) -> None:
    client = world.connect()
    client.close()
    with pytest.raises(mqlite.Closed):
        CALLS[call](client)
    world.mq.create_queue("still-open")


def test_closing_twice_is_harmless(world: World) -> None:
    world.mq.close()
    world.mq.close()


@IN_PROCESS
def test_a_handle_received_before_close_says_closed(world: World) -> None:
    world.mq.create_queue("q")
    world.mq.send("q", b"a")
    message = one(world.mq, "q")
    world.mq.close()
    with pytest.raises(mqlite.Closed):
        message.complete()


@SYNC
def test_one_owner_at_a_time_and_the_next_after_close(world: World) -> None:
    with pytest.raises(mqlite.DatabaseLocked, match=world.path.name):
        mqlite.open(str(world.path))
    world.close()
    with mqlite.open(str(world.path), clock=world.clock) as mq:
        assert mq.list_queues() == []


@SYNC
@pytest.mark.parametrize("spelling", ["file:", "dot", "parent", "symlink", "directory link"])
def test_every_spelling_of_a_file_is_the_same_file(
    world: World, tmp_path: Path, spelling: str
) -> None:
    path = world.path
    (tmp_path / "sub").mkdir()
    (tmp_path / "link.db").symlink_to(path)
    (tmp_path / "linked").symlink_to(path.parent, target_is_directory=True)
    other = {
        "file:": f"file:{path}",
        "dot": f"{path.parent}/./{path.name}",
        "parent": f"{path.parent}/sub/../{path.name}",
        "symlink": f"{tmp_path / 'link.db'}",
        "directory link": f"{tmp_path / 'linked' / path.name}",
    }[spelling]
    with pytest.raises(mqlite.DatabaseLocked):
        mqlite.open(other)


@SYNC
def test_memory_queues_are_private_and_unlocked(way: str) -> None:
    clock = ManualClock()
    with mqlite.open(":memory:", clock=clock) as one_, mqlite.open(":memory:", clock=clock) as two:
        one_.create_queue("q")
        one_.send("q", b"a")
        with pytest.raises(mqlite.NotFound):
            two.send("q", b"a")
        assert two.list_queues() == []
        assert one_.status().backend == "memory"
        assert one_.status().location == ":memory:"
        for _ in range(200):
            one_.status()
        assert one(one_, "q").body == b"a"


@SYNC
@pytest.mark.parametrize(
    "url", ["libsql://host", "postgres://host/db", "https://host", "wss://host", "mqlite://host"]
)
def test_no_url_is_taken_for_a_file_name(way: str, url: str, tmp_path: Path) -> None:
    with pytest.raises(mqlite.InvalidArgument, match=url.split(":")[0]):
        mqlite.open(url)


@SYNC
@pytest.mark.parametrize(
    ("mode", "level"),
    [(None, 1), ("NORMAL", 1), ("full", 2), (" Off ", 0), ("EXTRA", 3)],
)
def test_the_synchronous_setting_is_read_back(
    way: str, tmp_path: Path, mode: str | None, level: int
) -> None:
    options = {} if mode is None else {"synchronous": mode}
    with mqlite.open(str(tmp_path / "q.db"), clock=ManualClock(), **options) as mq:
        assert mq.core.store.status().pragmas["synchronous"] in (level, str(level), _LEVELS[level])


_LEVELS = ("off", "normal", "full", "extra")


@SYNC
def test_an_unknown_synchronous_setting_is_refused(way: str, tmp_path: Path) -> None:
    with pytest.raises(mqlite.InvalidArgument, match="synchronous"):
        mqlite.open(str(tmp_path / "q.db"), synchronous="MAYBE")


@SYNC
@pytest.mark.parametrize(
    "options",
    [
        {"max_message_bytes": 0},
        {"dlq_max_count": -1},
        {"dlq_max_bytes": -1},
        {"dlq_max_age": "-1s"},
    ],
)
def test_a_bad_option_is_refused_by_name_and_leaves_the_file_free(
    way: str, tmp_path: Path, options: dict[str, object]
) -> None:
    path = str(tmp_path / "q.db")
    [name] = options
    with pytest.raises(mqlite.InvalidArgument, match=name):
        mqlite.open(path, **options)
    mqlite.open(path, clock=ManualClock()).close()


def test_queues_satisfy_the_protocols(world: World) -> None:
    if isinstance(world.mq, Blocking):
        assert isinstance(world.mq.inner, AsyncMQ)
    else:
        assert isinstance(world.mq, MQ)


@pytest.mark.parametrize("way", ["async"])
def test_a_cancelled_poll_claims_nothing(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")

    async def give_up() -> None:
        poll = asyncio.ensure_future(mq.inner.receive("q", wait=20))
        await asyncio.sleep(0)
        poll.cancel()
        with pytest.raises(asyncio.CancelledError):
            await poll

    mq.loop.run(give_up())
    world.until_waiting("q", 0)
    mq.send("q", b"a")
    assert one(mq, "q").delivery_count == 1


@pytest.mark.parametrize("way", ["async"])
def test_a_cancelled_receive_gives_its_claim_back_uncounted(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")

    async def race(delay: int) -> list[bytes]:
        polling = asyncio.ensure_future(mq.inner.receive("q", wait=20))
        sending = asyncio.ensure_future(mq.inner.send("q", b"a"))
        for _ in range(delay):
            await asyncio.sleep(0)
        polling.cancel()
        await sending
        try:
            return bodies(await polling)
        except asyncio.CancelledError:
            return []

    for delay in range(40):
        if not mq.loop.run(race(delay)):
            eventually(lambda: counts(mq, "q") == {"active": 1})
            assert one(mq, "q").delivery_count == 1
        for message in mq.peek("q"):
            assert message.state == "locked"
        world.later(30_000)
        mq.receive("q", mode="receive_and_delete")
        assert counts(mq, "q") == {}


@pytest.mark.parametrize("way", ["async"])
def test_one_queue_serves_several_event_loops(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")

    async def work() -> bytes:
        await mq.inner.send("q", b"a")
        [message] = await mq.inner.receive("q", wait=20)
        await message.complete()
        return message.body

    assert [start(asyncio.run, work()).result() for _ in range(3)] == [b"a"] * 3
    assert counts(mq, "q") == {}

"""Operations on the writer: results, failures, groups, bounds."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mqlite.engine.catalog import Queue
from mqlite.engine.steps import (
    NOW,
    Changed,
    Earliest,
    Event,
    Insert,
    Last,
    Many,
    Operation,
    QueueById,
    Resolve,
    Statement,
    Steps,
)
from mqlite.errors import NotFound, Unavailable
from mqlite.stores.sqlite import SqliteStore
from patience import eventually

from .toys import INSERT_PAYLOAD, INTO_PAYLOADS, PAYLOAD, bodies, failing, held, put, queue, running


class Thrown(BaseException):
    """Like KeyboardInterrupt, but none that asyncio treats in its own way."""


def test_every_step_is_answered(any_store: SqliteStore) -> None:
    def steps() -> Steps[list[Any]]:
        answers: list[Any] = [(yield NOW)]
        answers.append((yield Statement("SELECT ?, 'text', x'00'", (1,))))
        answers.append((yield (Statement("SELECT 1"), Statement("SELECT 2"))))
        answers.append((yield Many(INSERT_PAYLOAD, [(b"a",), (b"b",)])))
        answers.append((yield Insert(INTO_PAYLOADS, PAYLOAD, [(b"c",), (b"d",), (b"e",)])))
        answers.append((yield Insert(INTO_PAYLOADS, PAYLOAD, [])))
        answers.append((yield Resolve("unknown")))
        answers.append((yield Earliest("lock")))
        answers.append((yield Last(Statement("SELECT 3"))))
        answers.append((yield Last((Statement("SELECT 4"),))))
        return answers

    assert any_store.run(Operation("all", steps)) == [
        any_store.clock.now(),
        [(1, "text", b"\0")],
        [[(1,)], [(2,)]],
        None,
        [3, 4, 5],
        [],
        None,
        0,
        [(3,)],
        [[(4,)]],
    ]


def test_names_are_remembered_until_they_change(any_store: SqliteStore) -> None:
    def look() -> Steps[list[Any]]:
        return [(yield Resolve("q")), (yield QueueById(7))]

    def pause() -> Steps[Any]:
        yield Statement("UPDATE mqlite_queues SET paused = 1 WHERE id = 7")
        yield Changed("q")
        return (yield Resolve("q"))

    any_store.run(queue(7, "q"))
    by_name, by_id = any_store.run(Operation("look", look))
    assert isinstance(by_name, Queue)
    assert by_name is by_id
    assert any_store.run(Operation("look", look))[0] is by_name
    version = any_store.names.version
    assert any_store.run(Operation("pause", pause)).paused
    assert any_store.names.version > version
    assert any_store.run(Operation("look", look))[1].paused


def test_a_rollback_forgets_what_changed_in_it(any_store: SqliteStore) -> None:
    def create_and_fail() -> Steps[None]:
        yield Statement(
            "INSERT INTO mqlite_queues SELECT 8, 'r', kind, paused, lock_duration_ms, "
            "max_delivery_count, default_ttl_ms, 1, 0, ordering_mode, 0, 0, 0, 0, 0, 2.0, 0.0, "
            "max_counts, 0, 0, claim_order, 0, 0, NULL FROM mqlite_queues"
        )
        yield Changed("r")
        assert (yield Resolve("r")) is not None
        raise NotFound("undone")

    any_store.run(queue())
    with pytest.raises(NotFound):
        any_store.run(Operation("create", create_and_fail))
    assert any_store.names.known("r") is None
    assert any_store.names.known_queue(8) is None


@pytest.mark.parametrize("error", [NotFound("no"), ValueError("own"), KeyboardInterrupt()])
def test_a_failing_operation_writes_nothing_and_frees_the_writer(
    any_store: SqliteStore, error: BaseException
) -> None:
    with pytest.raises(type(error)) as caught:
        any_store.run(failing(error, after=b"torn"))
    assert caught.value is error
    assert any_store.run(put(b"next")) == [1]
    assert any_store.run(bodies()) == [b"next"]


def test_effects_are_published_only_after_the_commit(any_store: SqliteStore) -> None:
    told: list[Event] = []
    any_store.events.append(told.extend)
    with pytest.raises(NotFound):
        any_store.run(failing(NotFound("no"), after=b"torn"))
    assert told == []
    any_store.run(put(b"a", b"b"))
    assert told == [Event("put", 1, 2)]


def test_a_listener_that_fails_does_not_fail_the_caller(
    any_store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    def listen(events: object) -> None:
        raise ValueError("listener")

    any_store.events.append(listen)
    assert any_store.run(put(b"a")) == [1]
    assert "listener" in caplog.text


def test_a_claim_about_the_future_is_checked_after_the_commit(
    any_store: SqliteStore, clock: Any
) -> None:
    class Lease:
        def recheck(self, now: int) -> str:
            return f"at {now}"

    def steps() -> Steps[Any]:
        yield NOW
        clock.advance(5)
        return Lease()

    later = clock.now() + 5
    assert any_store.run(Operation("claim", steps)) == f"at {later}"
    assert asyncio.run(any_store.run_async(Operation("claim", steps))) == f"at {later + 5}"


def test_tasks_and_threads_share_the_writer(any_store: SqliteStore) -> None:
    async def tasks() -> None:
        await asyncio.gather(*(any_store.run_async(put(b"task")) for _ in range(300)))

    with running(lambda: [any_store.run(put(b"thread")) for _ in range(300)]):
        asyncio.run(tasks())
    assert sorted(any_store.run(bodies())) == [b"task"] * 300 + [b"thread"] * 300


def test_a_member_of_a_group_fails_alone(any_store: SqliteStore) -> None:
    told: list[Event] = []
    any_store.events.append(told.extend)

    async def group() -> list[Any]:
        with held(any_store) as gate:
            calls = [
                asyncio.ensure_future(any_store.run_async(operation))
                for operation in (
                    put(b"first"),
                    failing(NotFound("own"), after=b"torn"),
                    failing(Thrown(), after=b"torn"),
                    put(b"last"),
                )
            ]
            await asyncio.sleep(0)
            gate.opened.set()
            return await asyncio.gather(*calls, return_exceptions=True)

    first, own, base, last = asyncio.run(group())
    # The savepoint takes the key back too.
    assert (first, last) == ([1], [2])
    assert isinstance(own, NotFound)
    assert isinstance(base, Thrown)
    assert any_store.run(bodies()) == [b"first", b"last"]
    assert told == [Event("put", 1, 1), Event("put", 1, 1)]


def test_members_run_again_when_their_transaction_is_lost(any_store: SqliteStore) -> None:
    def lose() -> Steps[None]:
        yield Insert(INTO_PAYLOADS, PAYLOAD, [(b"lost",)])
        yield Statement("ROLLBACK")
        yield Statement("SELECT no_such_column")

    async def group() -> list[Any]:
        with held(any_store) as gate:
            calls = [
                asyncio.ensure_future(any_store.run_async(operation))
                for operation in (put(b"first"), Operation("lose", lose), put(b"last"))
            ]
            await asyncio.sleep(0)
            gate.opened.set()
            return await asyncio.gather(*calls, return_exceptions=True)

    first, lost, last = asyncio.run(group())
    assert isinstance(lost, Exception)
    assert (first, last) == ([1], [2])
    assert any_store.run(bodies()) == [b"first", b"last"]


def test_a_full_disk_is_told_apart_and_reading_goes_on(store: SqliteStore) -> None:
    def limit(pages: int) -> Operation[Any]:
        def steps() -> Steps[Any]:
            return (yield Statement(f"PRAGMA max_page_count = {pages}"))

        return Operation("limit", steps)

    store.run(put(b"first"))
    ((pages,),) = store.run(limit(1))
    with pytest.raises(Unavailable) as full:
        store.run(put(b"x" * 1_000_000))
    assert full.value.reason == "disk_full"

    async def group() -> list[Any]:
        with held(store) as gate:
            calls = [
                asyncio.ensure_future(store.run_async(put(body)))
                for body in (b"small", b"x" * 1_000_000)
            ]
            await asyncio.sleep(0)
            gate.opened.set()
            return await asyncio.gather(*calls, return_exceptions=True)

    small, large = asyncio.run(group())
    assert small == [2]
    assert isinstance(large, Unavailable)
    assert large.reason == "disk_full"
    assert store.run(bodies()) == [b"first", b"small"]
    store.run(limit(pages + 10_000))
    assert store.run(put(b"x" * 1_000_000)) == [3]


def test_a_file_that_cannot_be_written_is_told_apart(store: SqliteStore) -> None:
    def query_only(on: str) -> Operation[None]:
        def steps() -> Steps[None]:
            yield Statement(f"PRAGMA query_only = {on}")

        return Operation("query_only", steps)

    store.run(query_only("ON"))
    with pytest.raises(Unavailable) as refused:
        store.run(put(b"never"))
    assert refused.value.reason == "read_only"
    with pytest.raises(Unavailable) as refused:
        asyncio.run(store.run_async(put(b"never")))
    assert refused.value.reason == "read_only"
    assert store.run(bodies()) == []


def test_a_big_operation_runs_alone(any_store: SqliteStore) -> None:
    async def scenario() -> None:
        with held(any_store) as gate:
            calls = [
                asyncio.ensure_future(any_store.run_async(put(b"x", size=size)))
                for size in (1, 9_000_000, 1, 5_000_000, 5_000_000)
            ]
            await asyncio.sleep(0)
            before = any_store._committer.commits
            gate.opened.set()
            await asyncio.gather(*calls)
        # The gate's own; then 1 | 9 MB, which fills its group | 1 and 5 MB | 5 MB.
        assert any_store._committer.commits - before == 5

    asyncio.run(scenario())


def test_work_left_behind_runs_for_nobody(any_store: SqliteStore) -> None:
    any_store.post(put(b"left behind"))
    eventually(lambda: any_store.run(bodies()) == [b"left behind"])

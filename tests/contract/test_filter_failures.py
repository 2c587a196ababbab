"""Filters that fail, where filters run, and filters in transactions."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import mqlite
from contract.filtering import FAILS, GOLD, HOSTILE, Records, queue_id, told
from contract.looks import bodies, counts
from contract.ways import World
from mqlite import OutMessage
from mqlite.api import MQ
from mqlite.embedded import sending
from mqlite.embedded.transaction import transaction, transaction_async
from mqlite.engine import routing
from mqlite.engine.steps import Event
from mqlite.expr import Budget
from mqlite.expr.message import Filter


@pytest.fixture
def logged() -> Iterator[list[logging.LogRecord]]:
    handler = Records()
    logging.getLogger("mqlite").addHandler(handler)
    yield handler.records
    logging.getLogger("mqlite").removeHandler(handler)


@pytest.fixture
def failed(world: World) -> Counter[int]:
    """How many messages failed filters, by the id of the queue that did not get them."""
    seen: Counter[int] = Counter()

    def listen(events: Sequence[Event]) -> None:
        for event in events:
            if event.event == "filter_failed":
                seen[event.queue_id] += event.number

    world.core.store.events.append(listen)
    return seen


def test_a_filter_that_fails_lets_nothing_through_and_disturbs_nobody(
    world: World, failed: Counter[int], logged: list[logging.LogRecord]
) -> None:
    mq = world.mq
    for name, expr in {"a": "", "bad": FAILS, "c": "true"}.items():
        mq.subscribe("t", name, expr=expr)
    assert mq.send("t", b"secret", subject="a.b") > 0
    assert mq.send("t", b"", subject="a.b.c.x") > 0
    assert [len(mq.peek(name)) for name in ("a", "bad", "c")] == [2, 1, 2]
    assert failed == {queue_id(mq, "bad"): 1}
    [record] = logged
    error = "index out of range: 3 (array length is 2) (1:14)"
    assert (record.name, record.levelname) == ("mqlite", "ERROR")
    assert told(record) == ("bad", FAILS, error)
    assert record.getMessage() == (
        f"a filter failed: subscription='bad' expr={FAILS!r} error={error!r} messages=1"
    )


def test_the_failures_of_a_call_are_counted_and_each_kind_logged_once(
    world: World, failed: Counter[int], logged: list[logging.LogRecord]
) -> None:
    mq = world.mq
    mq.subscribe("t", "bad", expr=FAILS)
    mq.subscribe("t", "worse", expr="body_json.n > 1")
    texts = ("", "", "a", "a.b.c.x")
    mq.send_batch("t", [OutMessage(subject=text) for text in texts])
    assert failed == {queue_id(mq, "bad"): 3, queue_id(mq, "worse"): 4}
    assert [(record.args["subscription"], record.args["number"]) for record in logged] == [
        ("bad", 2),
        ("bad", 1),
        ("worse", 4),
    ]


@pytest.mark.parametrize(
    ("expr", "error"),
    [
        ("duration(body_text) > days(1)", "failed (1:1): try it with a sample to see why"),
        ("int(body_text) > 1", "invalid operation: int(…) (1:1)"),
        ("body_json.x[body_text] == 1", "failed (1:12): try it with a sample to see why"),
        ("body_json.a.b == 1", "cannot fetch b from <nil> (1:13)"),
        ("body_json.flag", None),
    ],
)
def test_what_a_message_holds_is_not_logged(
    mq: MQ, logged: list[logging.LogRecord], expr: str, error: str | None
) -> None:
    mq.subscribe("t", "s", expr=expr)
    assert mq.send("t", b"secret") == 0
    assert [told(record)[2] for record in logged] == ([error] if error else [])
    assert "secret" not in "".join(record.getMessage() for record in logged)


def test_nothing_is_told_of_a_publish_that_failed(
    world: World, failed: Counter[int], logged: list[logging.LogRecord]
) -> None:
    mq = world.mq
    mq.subscribe("t", "a", expr=FAILS)
    mq.subscribe("t", "b")
    mq.create_queue("b", kind="subscription", ordering_mode="group_fifo")
    with pytest.raises(mqlite.GroupRequired):
        mq.send("t", b"x")
    assert (failed, logged) == ({}, [])


def test_a_stored_filter_that_compiles_no_more_lets_nothing_through(
    world: World, logged: list[logging.LogRecord]
) -> None:
    world.mq.subscribe("t", "s", expr="true")
    world.mq.subscribe("t", "z")
    world.close()
    with closing(sqlite3.connect(world.path)) as connection, connection:
        connection.execute("UPDATE mqlite_subscriptions SET expr = 'subjct' WHERE name = 's'")
    mq = world.open()
    assert mq.send("t", b"x") > 0
    assert (counts(mq, "s"), counts(mq, "z")) == ({}, {"active": 1})
    assert [told(record) for record in logged] == [("s", "subjct", "unknown name subjct (1:1)")]
    mq.subscribe("t", "s", expr="true")
    mq.send("t", b"x")
    assert counts(mq, "s") == {"active": 1}


def test_a_failure_nobody_foresaw_lets_nothing_through(
    mq: MQ, logged: list[logging.LogRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    def matches(self: Filter, sample: object, budget: object = None) -> bool:
        raise ZeroDivisionError("secret")

    mq.subscribe("t", "s", expr="true")
    monkeypatch.setattr(Filter, "matches", matches)
    assert mq.send("t", b"x") == 0
    assert [told(record) for record in logged] == [("s", "true", "unexpected ZeroDivisionError")]


def test_the_work_of_a_call_is_bounded(
    world: World,
    failed: Counter[int],
    logged: list[logging.LogRecord],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def budget(work: int = 20_000) -> Budget:
        return Budget(work)

    monkeypatch.setattr("mqlite.expr.Budget", budget)
    mq = world.mq
    for name in ("h1", "h2", "h3"):
        mq.subscribe("t", name, expr=HOSTILE)
    mq.subscribe("t", "plain", expr='subject == ""')
    for _ in range(2):
        mq.send("t", b"x")
    assert [len(mq.peek(name)) for name in ("h1", "h2", "h3", "plain")] == [2, 2, 0, 2]
    assert failed == {queue_id(mq, "h3"): 2}
    assert {told(record)[2] for record in logged} == {"work budget exceeded (1:1)"}
    mq.send_batch("t", [b"x"] * 5)
    assert [len(mq.peek(name)) for name in ("h1", "h2", "h3", "plain")] == [3, 3, 0, 7]


def test_no_message_no_failure(mq: MQ, logged: list[logging.LogRecord]) -> None:
    mq.subscribe("t", "s", expr=FAILS)
    assert mq.send_batch("t", []) == []
    assert logged == []


def test_filters_run_outside_the_writer_once_the_topic_is_settled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside: list[bool] = []
    matches = Filter.matches

    def watched(self: Filter, sample: Any, budget: Budget | None = None) -> bool:
        inside.append(world.core.store._connection.in_transaction)
        return matches(self, sample, budget)

    monkeypatch.setattr(Filter, "matches", watched)
    for expr in ("true", "not false"):
        world.mq.subscribe("t", "s", expr=expr)
        for _ in range(2):
            world.mq.send("t", b"x")
    assert inside == [False] * 4


def test_routes_are_worked_out_anew_when_the_topic_has_changed_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    mq, core = world.mq, world.core
    mq.subscribe("t", "s", expr='subject == "a"')
    mq.send("t", b"1", subject="a")
    operation = core.calls.send("t", [OutMessage(body=b"2", subject="a")], None, None)
    mq.subscribe("t", "s", expr='subject == "b"')
    mq.subscribe("t", "r", expr='subject == "a"')
    core.run(operation)
    assert (bodies(mq.peek("s")), bodies(mq.peek("r"))) == ([b"1"], [b"2"])


@pytest.mark.parametrize("way", ["async", "http"])
@pytest.mark.parametrize(
    ("expr", "message"),
    [(HOSTILE, OutMessage()), ("body_size > 0", OutMessage(body=b"x" * 100_000))],
)
def test_the_event_loop_does_not_wait_for_long_filters(
    world: World, expr: str, message: OutMessage, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def watched(*args: Any) -> routing.Routes:
        threads.append(threading.current_thread())
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return routing.route(*args)

    monkeypatch.setattr(sending, "route", watched)
    world.mq.subscribe("t", "s", expr=expr)
    assert world.mq.send_batch("t", [message])[0] > 0
    assert len(threads) == 1
    world.mq.subscribe("t", "s", expr="body_size < 3")
    assert world.mq.send("t", b"x") > 0
    assert len(threads) == 1


def test_publishes_of_the_same_moment_are_told_apart(tmp_path: Path) -> None:
    async def publish() -> tuple[list[Any], dict[str, list[bytes]], Counter[str]]:
        async with await mqlite.open_async(tmp_path / "mq.db") as mq:
            for name in "ab":
                await mq.subscribe("t", name, expr=f'subject == "{name}"')
            await mq.subscribe("t", "bad", expr=FAILS)
            await mq.create_queue("a", kind="subscription", dedup_window="1m")
            await mq.send("t", b"first", subject="a", message_id="1")
            seen: Counter[str] = Counter()

            def listen(events: Sequence[Event]) -> None:
                for event in events:
                    seen[event.event] += event.number

            mq.core.store.events.append(listen)
            commits = mq.core.store._committer.commits
            results = await asyncio.gather(
                mq.send("t", b"1", subject="a"),
                mq.send("t", b"2", subject="c"),
                mq.send("t", b"3", subject="b"),
                mq.send("t", b"4", subject="a"),
            )
            assert mq.core.store._committer.commits == commits + 1
            results += await asyncio.gather(
                mq.send("t", b"other", subject="a", message_id="1"),
                mq.send("t", b"5", subject="b"),
                return_exceptions=True,
            )
            return results, {name: bodies(await mq.peek(name)) for name in "ab"}, seen

    results, stored, seen = asyncio.run(publish())
    assert results[1] == 0
    assert isinstance(results[4], mqlite.DedupConflict)
    assert all(results[place] > 0 for place in (0, 2, 3, 5))
    assert stored == {"a": [b"first", b"1", b"4"], "b": [b"3", b"5"]}
    assert (seen["enqueued"], seen["filter_failed"]) == (4, 6)


def test_filters_apply_inside_a_transaction(
    world: World, failed: Counter[int], logged: list[logging.LogRecord]
) -> None:
    mq = world.mq
    mq.subscribe("t", "gold", expr=GOLD + " && visible_at == enqueued_at")
    mq.subscribe("t", "bad", expr=FAILS)
    for rolled_back in (True, False):
        try:
            with transaction(world.core.store, world.core.calls) as tx:
                assert tx.send("t", b"1", properties={"tier": "gold"}) > 0
                assert tx.send_batch("t", [b"2", b"3"]) == [0, 0]
                assert logged == []
                if rolled_back:
                    raise LookupError
        except LookupError:
            assert (failed, logged) == ({}, [])
    assert bodies(mq.peek("gold")) == [b"1"]
    assert failed == {queue_id(mq, "bad"): 3}
    assert [record.args["number"] for record in logged] == [1, 2]


def test_filters_apply_inside_a_transaction_of_a_task(world: World) -> None:
    world.mq.subscribe("t", "s", expr=GOLD)

    async def publish() -> list[int]:
        async with transaction_async(world.core.store, world.core.calls) as tx:
            return [
                await tx.send("t", b"1", properties={"tier": "gold"}),
                await tx.send("t", b"2"),
            ]

    number, none = asyncio.run(publish())
    assert (number > 0, none) == (True, 0)
    assert bodies(world.mq.peek("s")) == [b"1"]


@pytest.mark.parametrize("how", ["join", "outbox"])
def test_filters_apply_in_the_transaction_of_another_connection(
    world: World, how: str, failed: Counter[int], logged: list[logging.LogRecord]
) -> None:
    mq = world.mq
    mq.subscribe("t", "gold", expr=GOLD)
    mq.subscribe("t", "bad", expr=FAILS)
    connect = {"join": world.core.join, "outbox": mqlite.outbox}[how]
    with closing(sqlite3.connect(world.path)) as connection:
        for end in (connection.rollback, connection.commit):
            joined = connect(connection)
            assert joined.send("t", b"1", properties={"tier": "gold"}) > 0
            assert joined.send("t", b"2") == 0
            end()
            world.core.store.look()
            if end == connection.rollback:
                assert (failed, logged) == ({}, [])
    assert bodies(mq.peek("gold")) == [b"1"]
    assert failed == {queue_id(mq, "bad"): 2}
    error = "index out of range: 3 (array length is 0) (1:14)"
    assert [told(record) for record in logged] == [("bad", FAILS, error)] * 2

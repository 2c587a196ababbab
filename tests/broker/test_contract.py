"""Every operation over HTTP, and every row of the error table that can be produced."""

from __future__ import annotations

from typing import Any

import pytest

import mqlite
from broker.support import Api, Reply
from mqlite.broker.serve import serving
from mqlite.clock import ManualClock
from mqlite.embedded import Embedded

MIB = 1024 * 1024


def held(api: Api, queue: str = "q", body: bytes = b"hi") -> dict[str, Any]:
    """The lease fields of a message that was sent and received."""
    api.send(queue, body)
    (message,) = api.receive(queue)
    return {
        "queue": queue,
        "seq_number": message["seq_number"],
        "lock_token": message["lock_token"],
    }


def generation(api: Api, name: str) -> str:
    return next(
        str(entry["generation"])
        for entry in api.ok("ListQueues")["queues"]
        if entry["name"] == name
    )


def failed(reply: Reply, status: int, code: str) -> None:
    assert (reply.status, reply.code) == (status, code)
    assert list(reply.json) == ["code", "message"]
    assert reply.json["message"]
    assert reply.headers["content-type"] == "application/json"


def test_send_receive_complete(api: Api, clock: ManualClock) -> None:
    assert api.send("q", b"hi") == [1]
    (message,) = api.receive("q")
    token = message.pop("lock_token")
    assert message == {
        "seq_number": 1,
        "enqueued_at_ms": clock.now(),
        "locked_until_ms": clock.now() + 30_000,
        "delivery_count": 1,
        "body": "aGk=",
        "lease_ms": 30_000,
    }
    assert api.ok("Complete", queue="q", seq_number=1, lock_token=token) == {"ok": True}
    assert api.ok("Stats", queue="q")["total"] == 0


def test_fields_come_in_the_documented_order(api: Api) -> None:
    fields = dict.fromkeys(("message_id", "correlation_id", "reply_to", "group_id"), "x")
    api.ok(
        "Send",
        queue="q",
        ttl_ms=1000,
        messages=[
            {**fields, "content_type": "t", "subject": "s", "properties": {"b": "1", "a": "2"}}
        ],
    )
    (message,) = api.ok("Peek", queue="q")["messages"]
    assert list(message) == [
        "seq_number",
        "enqueued_at_ms",
        "expires_at_ms",
        "visible_at_ms",
        "state",
        "message_id",
        "correlation_id",
        "reply_to",
        "group_id",
        "content_type",
        "subject",
        "properties",
    ]
    assert list(message["properties"]) == ["a", "b"]


def test_receive_and_delete_grants_no_lease(api: Api) -> None:
    api.send("q", b"hi")
    (message,) = api.receive("q", receive_mode=1)
    assert not {"lock_token", "locked_until_ms", "lease_ms"} & set(message)
    assert api.ok("Stats", queue="q")["total"] == 0


@pytest.mark.parametrize("mode", [0, 2, -1])
def test_every_other_mode_is_peek_lock(api: Api, mode: int) -> None:
    api.send("q", b"hi")
    assert "lock_token" in api.receive("q", receive_mode=mode)[0]


@pytest.mark.parametrize(("asked", "got"), [(None, 1), (0, 1), (-5, 1), (2, 2), (1000, 3)])
def test_max_messages_is_clamped(api: Api, asked: int | None, got: int) -> None:
    api.send("q", b"1", b"2", b"3")
    assert len(api.receive("q", max_messages=asked)) == got


@pytest.mark.parametrize("wait", [-1, 0])
def test_a_negative_wait_is_none(api: Api, wait: int) -> None:
    assert api.receive("q", wait_time_ms=wait) == []


def test_an_attempt_id_is_replayed_with_what_remains_of_the_lease(
    api: Api, clock: ManualClock
) -> None:
    api.send("q", b"hi")
    first = api.receive("q", receive_attempt_id="a")
    clock.advance(10_000)
    again = api.receive("q", receive_attempt_id="a")
    assert again[0]["lock_token"] == first[0]["lock_token"]
    assert (first[0]["lease_ms"], again[0]["lease_ms"]) == (30_000, 20_000)
    failed(
        api.post("Receive", {"queue": "q", "receive_attempt_id": "a", "receive_mode": 1}),
        400,
        "invalid_argument",
    )


def test_settling_another_way(api: Api, clock: ManualClock) -> None:
    lease = held(api)
    assert api.ok("Renew", **lease) == {"ok": True}
    assert api.ok("Abandon", **lease) == {"ok": True}
    (message,) = api.receive("q")
    lease["lock_token"] = message["lock_token"]
    assert api.ok("Release", **lease) == {"ok": True}
    [message] = api.receive("q")
    lease["lock_token"] = message["lock_token"]
    assert api.ok("Abandon", **lease, snooze=True) == {"ok": True}
    [message] = api.receive("q")
    assert (message["delivery_count"], message["failure_count"]) == (3, 1)
    lease["lock_token"] = message["lock_token"]
    assert api.ok("Defer", **lease) == {"ok": True}
    answer = api.ok("ReceiveDeferred", queue="q", seq_numbers=[99, lease["seq_number"]])
    assert list(answer) == ["messages"]
    (message,) = answer["messages"]
    assert (message["delivery_count"], message["lease_ms"]) == (4, 30_000)
    lease["lock_token"] = message["lock_token"]
    reason = {"dead_letter_reason": "bad", "dead_letter_description": "very"}
    assert api.ok("Reject", **lease, **reason) == {"ok": True}
    (dead,) = api.ok("Peek", queue="q", state="dead_lettered")["messages"]
    assert reason.items() <= dead.items()
    assert "lock_token" not in dead


def test_batches_are_positional(api: Api, clock: ManualClock) -> None:
    one, two = held(api), held(api)
    items = [{key: lease[key] for key in ("seq_number", "lock_token")} for lease in (one, two)]
    items.insert(1, {"seq_number": 99, "lock_token": "no"})
    clock.advance(1000)
    renewed = api.ok("RenewBatch", queue="q", messages=items)["results"]
    until = clock.now() + 30_000
    assert renewed == [
        {"seq_number": 1, "ok": True, "locked_until_ms": until, "lease_ms": 30_000},
        {"seq_number": 99, "ok": False},
        {"seq_number": 2, "ok": True, "locked_until_ms": until, "lease_ms": 30_000},
    ]
    completed = api.ok("CompleteBatch", queue="q", messages=items)["results"]
    assert completed == [
        {"seq_number": 1, "ok": True},
        {"seq_number": 99, "ok": False},
        {"seq_number": 2, "ok": True},
    ]
    assert api.ok("CompleteBatch", queue="q") == {"results": []}


def test_scheduling_and_cancelling(api: Api, clock: ManualClock) -> None:
    at = clock.now() + 60_000
    (seq,) = api.ok("Schedule", queue="q", messages=[{}], scheduled_enqueue_time_ms=at)[
        "seq_numbers"
    ]
    assert api.send("q", b"x", scheduled_enqueue_time_ms=at) == [seq + 1]
    assert api.ok("Stats", queue="q")["scheduled"] == 2
    assert api.ok("Cancel", queue="q", seq_number=seq) == {"ok": True}
    failed(api.post("Cancel", {"queue": "q", "seq_number": seq}), 404, "not_found")
    assert api.ok("Schedule", queue="q", messages=[{}])["seq_numbers"] == [seq + 2]


def test_peek_pages(api: Api) -> None:
    api.send("q", *[b"x"] * 40)

    def seqs(**fields: Any) -> list[int]:
        return [m["seq_number"] for m in api.ok("Peek", queue="q", **fields)["messages"]]

    assert seqs() == seqs(max=0) == seqs(max=-1) == seqs(from_seq=-9) == list(range(1, 33))
    assert seqs(from_seq=39, max=5000) == [39, 40]
    assert seqs(state="locked") == seqs(state="nonsense") == []
    assert api.ok("Peek", queue="nope") == {"messages": []}


def test_stats_names_every_count(api: Api) -> None:
    assert api.ok("Stats", queue="q") == {
        "queue": "q",
        "active": 0,
        "locked": 0,
        "deferred": 0,
        "scheduled": 0,
        "dead_lettered": 0,
        "total": 0,
        "oldest_message_age_ms": 0,
    }


def test_queue_settings(api: Api) -> None:
    api.ok(
        "CreateQueue",
        name="q",
        config={"lock_duration_ms": 5, "ordering_mode": "strict_fifo", "retry_multiplier": 3},
    )
    assert api.ok("CreateQueue", name="q", config={"lock_duration_ms": 0}) == {}
    (entry,) = api.ok("ListQueues")["queues"]
    assert list(entry)[:7] == [
        "name",
        "kind",
        "lock_duration_ms",
        "max_delivery_count",
        "default_ttl_ms",
        "dedup_window_ms",
        "generation",
    ]
    # A documented setting that is left out returns to its default, an added one stays.
    assert (entry["lock_duration_ms"], entry["ordering_mode"]) == (30_000, "standard")
    assert entry["retry_multiplier"] == 3
    assert entry["dead_letter_on_expire"] is True
    assert entry["paused"] is False


def test_pausing(api: Api) -> None:
    api.send("q", b"x")
    assert api.ok("PauseQueue", name="q") == {}
    assert api.ok("ListQueues")["queues"][0]["paused"] is True
    assert api.receive("q") == []
    assert api.ok("ResumeQueue", name="q") == {}
    assert len(api.receive("q")) == 1


def test_topics(api: Api) -> None:
    assert api.ok("Subscribe", topic="t", name="s", filter={"expr": " "}) == {}
    assert api.ok("Subscribe", topic="t", name="s") == {}
    assert api.ok("ListSubscriptions") == {"subscriptions": [{"topic": "t", "name": "s"}]}
    api.send("t", b"x")
    assert len(api.receive("s", receive_mode=1)) == 1
    arguments = {"topic": "t", "name": "s", "generation": generation(api, "s")}
    assert api.ok("Unsubscribe", **arguments) == {"deleted": True}
    assert api.ok("ListSubscriptions") == {"subscriptions": []}


def test_filters(api: Api) -> None:
    filter_ = {"expr": 'subject == "a"'}
    assert api.ok("Subscribe", topic="t", name="s", filter=filter_) == {}
    assert api.ok("ListSubscriptions") == {"subscriptions": [{"topic": "t", "name": "s"} | filter_]}
    accepted, refused = (
        api.ok("Send", queue="t", messages=[{"body": "eA==", "subject": subject}])
        for subject in "ab"
    )
    assert accepted["seq_numbers"][0] > 0
    assert refused == {"seq_numbers": [0]}
    assert len(api.receive("s", receive_mode=1)) == 1
    reply = api.post("Subscribe", {"topic": "t", "name": "s", "filter": {"expr": "subjct == 1"}})
    failed(reply, 400, "invalid_argument")
    assert reply.json["message"].endswith('\ndid you mean "subject"?')
    reply = api.post("Subscribe", {"topic": "t", "name": "s", "filter": {"expr": "", "sql": "x"}})
    failed(reply, 400, "invalid_argument")


def test_trying_a_filter(api: Api) -> None:
    assert api.ok("TestFilter") == {"valid": True, "ran": False, "matched": False}
    assert api.ok("TestFilter", expr="body_size") == {
        "valid": False,
        "error": "expected bool, but got int",
        "ran": False,
        "matched": False,
    }
    good = {"valid": True, "ran": True, "matched": True}
    assert api.ok("TestFilter", expr=" ", message={}) == good
    assert api.ok("TestFilter", expr='body_text == "hi"', message={"body": "aGk="}) == good
    times = {"enqueued_at_ms": 1000, "visible_at_ms": 3000}
    expr = "enqueued_at.Second() == 1 && visible_at - enqueued_at == seconds(2)"
    assert api.ok("TestFilter", expr=expr, message=times) == good
    expr = "visible_at == enqueued_at && enqueued_at.Year() >= 1970"
    assert (
        api.ok("TestFilter", expr=expr, message={"enqueued_at_ms": 0, "visible_at_ms": 0}) == good
    )
    failing = api.ok("TestFilter", expr="body_json.n > 1", message={})
    assert failing == good | {"matched": False, "error": failing["error"]}
    assert failing["error"].startswith("invalid operation: <nil> > int (1:13)\n")
    failed(api.post("TestFilter", {"message": {"body": "?"}}), 400, "invalid_argument")


def test_redrive_and_purge(api: Api) -> None:
    for _ in range(2):
        api.ok("Reject", **held(api))
    assert api.ok("Redrive", queue="q", max=1) == {"moved": 1}
    assert api.ok("Redrive", queue="q", older_than_ms=1) == {"moved": 0}
    assert api.ok("Purge", queue="q") == {"purged": 1}


def test_deleting_is_fenced_by_the_generation(api: Api) -> None:
    fence = generation(api, "q")
    assert api.ok("DeleteQueue", name="q", generation=fence) == {"deleted": True}
    failed(api.post("DeleteQueue", {"name": "q", "generation": fence}), 404, "not_found")
    api.ok("CreateQueue", name="q")
    failed(api.post("DeleteQueue", {"name": "q", "generation": fence}), 409, "queue_changed")
    failed(api.post("DeleteQueue", {"name": "q"}), 400, "invalid_argument")


def test_status(api: Api) -> None:
    api.ok("Subscribe", topic="t", name="s")
    status = api.ok("Status")
    assert {"version", "schema_version", "ping_ms", "db_size_bytes", "uptime_ms"} <= set(status)
    assert status["backend"] == "memory"
    assert status["location"] == ":memory:"
    assert (status["remote"], status["auth"]) == (False, True)
    assert (status["queues"], status["subscriptions"]) == (1, 1)


@pytest.mark.parametrize(
    ("operation", "fields", "status", "code"),
    [
        ("CreateQueue", {"name": "x", "config": {"kind": "topic"}}, 400, "invalid_argument"),
        ("CreateQueue", {"name": "x", "config": {"ordering_mode": "no"}}, 400, "invalid_argument"),
        ("CreateQueue", {"name": "x", "config": {"dedup_window_ms": -1}}, 400, "invalid_argument"),
        ("CreateQueue", {"name": "a\x00"}, 400, "invalid_argument"),
        ("CreateQueue", {"name": "é" * 128}, 400, "invalid_argument"),
        ("Subscribe", {"topic": "", "name": "s"}, 400, "invalid_argument"),
        ("Redrive", {"queue": "q", "max": -1}, 400, "invalid_argument"),
        ("Purge", {"queue": "q", "older_than_ms": -1}, 400, "invalid_argument"),
        ("Redrive", {"queue": "q", "rate_per_sec": -1}, 400, "invalid_argument"),
        ("RenewBatch", {"queue": "q", "messages": [{}] * 513}, 400, "invalid_argument"),
        ("ReceiveDeferred", {"queue": "q", "seq_numbers": [1] * 257}, 400, "invalid_argument"),
        ("Schedule", {"queue": "q", "scheduled_enqueue_time_ms": 1}, 400, "invalid_argument"),
        ("Send", {"queue": "grouped", "messages": [{}]}, 400, "group_required"),
        ("Send", {"queue": "no"}, 404, "not_found"),
        ("Send", {"queue": "q", "results": 1}, 400, "invalid_argument"),
        ("Receive", {"queue": "no"}, 404, "not_found"),
        ("Receive", {"queue": "no", "wait_time_ms": 20_000}, 404, "not_found"),
        ("ReceiveDeferred", {"queue": "no"}, 404, "not_found"),
        ("Stats", {"queue": "no"}, 404, "not_found"),
        ("Renew", {"queue": "no"}, 404, "not_found"),
        ("RenewBatch", {"queue": "no", "messages": [{"lock_token": "t"}]}, 404, "not_found"),
        ("Redrive", {"queue": "no"}, 404, "not_found"),
        ("Redrive", {"queue": "q", "target": "no"}, 404, "not_found"),
        ("Purge", {"queue": "no"}, 404, "not_found"),
        ("Cancel", {"queue": "q", "seq_number": 99}, 404, "not_found"),
        ("PauseQueue", {"name": "no"}, 404, "not_found"),
        ("Unsubscribe", {"topic": "t", "name": "no", "generation": "1"}, 404, "not_found"),
        ("Complete", {"queue": "no", "seq_number": 1, "lock_token": "t"}, 409, "lock_lost"),
        ("Complete", {"queue": "q", "seq_number": 1, "lock_token": "t"}, 409, "lock_lost"),
        ("Abandon", {"queue": "q", "seq_number": 1}, 409, "lock_lost"),
        ("Abandon", {"queue": "q", "seq_number": 1, "snooze": 1}, 400, "invalid_argument"),
        ("Release", {"queue": "no", "seq_number": 1, "lock_token": "t"}, 409, "lock_lost"),
        ("Release", {"queue": "q", "seq_number": 1, "lock_token": "t"}, 409, "lock_lost"),
        ("Reject", {"queue": "q", "seq_number": 1, "lock_token": "t"}, 409, "lock_lost"),
        ("Defer", {"queue": "q", "seq_number": 1, "lock_token": "t"}, 409, "lock_lost"),
        ("Renew", {"queue": "q", "seq_number": 1, "lock_token": "t"}, 409, "lock_lost"),
        ("Subscribe", {"topic": "q", "name": "s"}, 409, "name_conflict"),
        ("Subscribe", {"topic": "t", "name": "q"}, 409, "name_conflict"),
        ("CreateQueue", {"name": "q", "config": {"kind": "subscription"}}, 409, "name_conflict"),
    ],
)
def test_the_error_table(
    shared_api: Api, operation: str, fields: dict[str, Any], status: int, code: str
) -> None:
    shared_api.ok("CreateQueue", name="grouped", config={"ordering_mode": "group_fifo"})
    failed(shared_api.post(operation, fields), status, code)


def test_dedup_conflict(api: Api) -> None:
    api.ok("CreateQueue", name="d", config={"dedup_window_ms": 60_000})

    def messages(*bodies: str) -> list[dict[str, str]]:
        return [{"message_id": "m", "body": body} for body in bodies]

    assert api.ok("Send", queue="d", messages=messages("AAAA"))["seq_numbers"] == [1]
    assert api.ok("Send", queue="d", messages=messages("AAAA"))["seq_numbers"] == [1]
    failed(api.post("Send", {"queue": "d", "messages": messages("BBBB")}), 409, "already_exists")
    both = api.ok("Send", queue="d", messages=messages("AAAA", "BBBB"))["seq_numbers"]
    assert both == [1, 0]


@pytest.mark.parametrize("operation", ["Send", "Schedule"])
def test_results_tell_a_conflict_from_other_outcomes(api: Api, operation: str) -> None:
    api.ok("CreateQueue", name="d", config={"dedup_window_ms": 60_000})
    first, other = ({"message_id": "m", "body": body} for body in ("AAAA", "BBBB"))
    api.ok("Send", queue="d", messages=[first])

    def send(*messages: dict[str, str], **more: Any) -> Any:
        return api.ok(operation, queue="d", messages=messages, **more)

    alone = api.post("Send", {"queue": "d", "messages": [other]}).json
    assert alone["code"] == "already_exists"
    assert send(other, results=True) == {"seq_numbers": [0], "results": [alone]}
    assert send(first, other, {"body": "CCCC"}, results=True) == {
        "seq_numbers": [1, 0, 2],
        "results": [{"seq_number": 1}, alone, {"seq_number": 2}],
    }
    assert send(first, results=True) == {"seq_numbers": [1], "results": [{"seq_number": 1}]}
    assert send(results=True) == {"seq_numbers": [], "results": []}


def test_results_of_a_topic_tell_a_conflict_from_nobody(api: Api) -> None:
    for name, expr in (("a", "subject == 'both'"), ("b", "subject in ['both', 'b']")):
        api.ok("Subscribe", topic="t", name=name, filter={"expr": expr})
    config = {"kind": "subscription", "dedup_window_ms": 60_000}
    api.ok("CreateQueue", name="b", config=config)
    api.ok("Send", queue="t", messages=[{"message_id": "m", "body": "AAAA", "subject": "b"}])

    def results(*subjects: str) -> list[Any]:
        messages = [{"message_id": "m", "body": "BBBB", "subject": name} for name in subjects]
        found: list[Any] = api.ok("Send", queue="t", messages=messages, results=True)["results"]
        return [result.get("code") or result["seq_number"] for result in found]

    assert results("nobody") == [0]
    assert results("b") == ["already_exists"]
    assert results("both", "nobody", "b") == [2, 0, "already_exists"]


@pytest.mark.parametrize("more", [{}, {"results": False}, {"results": None}])
def test_without_results_the_answer_is_as_it_was(api: Api, more: dict[str, Any]) -> None:
    reply = api.post("Send", {"queue": "q", "messages": [{}], **more})
    assert reply.raw == b'{"seq_numbers":[1]}\n'


@pytest.mark.parametrize("count", [1, 2])
def test_with_results_what_concerns_the_call_refuses_it(api: Api, count: int) -> None:
    api.ok("CreateQueue", name="grouped", config={"ordering_mode": "group_fifo"})
    good, bad = {"group_id": "g"}, {}
    messages = [good, bad][-count:]
    sent = {"queue": "grouped", "messages": messages, "results": True}
    failed(api.post("Send", sent), 400, "group_required")
    assert api.ok("Stats", queue="grouped")["total"] == 0


def test_a_long_message_id_is_not_repeated_in_full_in_a_slot(api: Api) -> None:
    api.ok("CreateQueue", name="d", config={"dedup_window_ms": 60_000})
    sent = [{"message_id": "m" * 10_000, "body": body} for body in ("AAAA", "BBBB")]
    [_, slot] = api.ok("Send", queue="d", messages=sent, results=True)["results"]
    assert len(slot["message"]) == 1000


def test_a_queue_with_messages_is_not_deleted(api: Api) -> None:
    api.send("q", b"x")
    fields = {"name": "q", "generation": generation(api, "q")}
    failed(api.post("DeleteQueue", fields), 409, "queue_not_empty")


def test_body_and_request_limits(api: Api) -> None:
    assert api.send("q", b"x" * MIB) == [1]
    over = api.post("Send", {"queue": "q", "messages": [{"body": "A" * (MIB // 3 * 4 + 8)}]})
    failed(over, 413, "message_too_large")
    assert "messages[0].body" in over.json["message"]
    # The size is looked at before the queue is, and one large body refuses the batch.
    fields = {"queue": "no", "messages": [{}, {"body": "A" * (MIB // 3 * 4 + 8)}]}
    failed(api.post("Send", fields), 413, "message_too_large")
    padding = b" " * (32 * MIB - len(b'{"queue":"q"}'))
    assert api.post("Send", b'{"queue":"q"}' + padding).status == 200
    failed(api.post("Send", b'{"queue":"q"}' + padding + b" "), 413, "message_too_large")
    assert api.ok("Stats", queue="q")["total"] == 1


def test_another_body_limit(clock: ManualClock) -> None:
    opened = mqlite.open(":memory:", clock=clock, max_message_bytes=2)
    with opened as mq, serving(mq, tokens="off") as url:
        api = Api(url, None)
        api.ok("CreateQueue", name="q")
        assert api.send("q", b"hi") == [1]
        reply = api.post("Send", {"queue": "q", "messages": [{"body": "aGkh"}]})
        failed(reply, 413, "message_too_large")


def test_what_nobody_foresaw_is_logged_and_not_told(
    api: Api, mq: Embedded, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(operation: object) -> None:
        raise ZeroDivisionError("a secret of the house")

    monkeypatch.setattr(mq.core, "run_async", broken)
    reply = api.post("Stats", {"queue": "q"})
    failed(reply, 500, "internal")
    assert reply.json["message"] == "internal server error"
    (logged,) = [record for record in caplog.records if record.name == "mqlite.broker"]
    assert logged.exc_info is not None
    assert logged.exc_info[0] is ZeroDivisionError

"""Strict JSON, over a socket: what is refused, with which code, naming what."""

from __future__ import annotations

import pytest

from broker.support import Api


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "empty"),
        (b"   ", "truncated"),
        (b"{", "truncated"),
        (b"null", "Expected `object`, got `null`"),
        (b"[]", "got `array`"),
        (b'"q"', "got `str`"),
        (b"7", "got `int`"),
        (b'{"queue":"q"}x', "trailing"),
        (b'{"queue":"q"}}', "trailing"),
        (b'{"queue":"q"}{}', "trailing"),
        (b'\xef\xbb\xbf{"queue":"q"}', "byte 0"),
        (b'{"queue":"\xff"}', "UTF-8"),
        (b'{"queue":"\xed\xa0\x80"}', "UTF-8"),
        (b'{"queue":"\\ud800"}', ""),
        (b'{"queue":"\\udc00 "}', ""),
        (b'{"queue":"a\nb"}', "malformed"),
        (b'{"Queue":"q"}', "unknown field `Queue`"),
        (b'{"queue":"q","nope":1}', "unknown field `nope`"),
        (b'{"queue":"q","messages":[{"nope":1}]}', "$.messages[0]"),
        (b'{"queue":"q","nope":' + b"[" * 100_000, "unknown field"),
        (b'{"queue":' + b"[" * 100_000, "$.queue"),
        (b'{"queue":5}', "$.queue"),
        (b'{"queue":"q","ttl_ms":1.0}', "$.ttl_ms"),
        (b'{"queue":"q","ttl_ms":1e3}', "$.ttl_ms"),
        (b'{"queue":"q","ttl_ms":"5"}', "$.ttl_ms"),
        (b'{"queue":"q","ttl_ms":true}', "$.ttl_ms"),
        (b'{"queue":"q","ttl_ms":NaN}', "malformed"),
        (b'{"queue":"q","ttl_ms":Infinity}', "malformed"),
        (b'{"queue":"q","ttl_ms":9223372036854775808}', "$.ttl_ms"),
        (b'{"queue":"q","ttl_ms":-9223372036854775809}', "$.ttl_ms"),
        (b'{"queue":"q","ttl_ms":1' + b"0" * 400 + b"}", "$.ttl_ms"),
        (b'{"queue":"q","messages":{}}', "$.messages"),
        (b'{"queue":"q","messages":[{"body":[1,2]}]}', "$.messages[0].body"),
        (b'{"queue":"q","messages":[{},{"body":"_"}]}', "messages[1].body"),
        (b'{"queue":"q","messages":[{"properties":{"k":1}}]}', "properties"),
        (b'{"queue":"q","messages":[{"properties":{"k":{}}}]}', "properties"),
        (b'{"queue":"q","messages":[{"priority":1001}]}', "priority"),
        (b'{"queue":"q","scheduled_enqueue_time_ms":-1}', "scheduled_enqueue_time_ms"),
        (b'{"messages":[{}]}', "queue"),
        (b'{"queue":"","messages":[{}]}', "queue"),
    ],
)
def test_refused(shared_api: Api, body: bytes, said: str) -> None:
    reply = shared_api.post("Send", body)
    assert (reply.status, reply.code) == (400, "invalid_argument")
    assert said in reply.json["message"]
    assert reply.headers["content-type"] == "application/json"
    assert reply.raw.endswith(b"}\n")


@pytest.mark.parametrize(
    "body",
    [
        b' {"queue":"q"}\n ',
        b'{"queue":"q","messages":null,"ttl_ms":null}',
        b'{"queue":"nope","queue":"q"}',  # the last of a repeated key wins
        b'{"queue":"q","ttl_ms":-9223372036854775808}',
        b'{"\\u0071ueue":"q"}',
    ],
)
def test_taken(shared_api: Api, body: bytes) -> None:
    reply = shared_api.post("Send", body)
    assert (reply.status, reply.json) == (200, {"seq_numbers": []})


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 0])
def test_integers_reach_to_64_bits(shared_api: Api, number: int) -> None:
    assert shared_api.ok("Peek", queue="q", max=number)["messages"] == []


def test_what_only_the_broker_sets_is_ignored_on_a_send(shared_api: Api) -> None:
    shared_api.ok("CreateQueue", name="ignored")
    (seq,) = shared_api.ok(
        "Send",
        queue="ignored",
        messages=[
            {
                "seq_number": 77,
                "enqueued_at_ms": 1,
                "expires_at_ms": 1,
                "visible_at_ms": 1,
                "locked_until_ms": 1,
                "delivery_count": 9,
                "lock_token": "t",
                "state": "deferred",
                "dead_letter_reason": "r",
                "dead_letter_description": "d",
                "failure_count": 3,
                "lease_ms": 4,
            }
        ],
    )["seq_numbers"]
    (message,) = shared_api.ok("Peek", queue="ignored")["messages"]
    assert message["seq_number"] == seq != 77
    assert message["state"] == "active"
    assert "delivery_count" not in message


def test_a_null_property_is_an_empty_string(shared_api: Api) -> None:
    shared_api.ok("Send", queue="q", messages=[{"properties": {"k": None, "a": "1"}}])
    (message,) = shared_api.receive("q")
    assert message["properties"] == {"a": "1", "k": ""}


@pytest.mark.parametrize("operation", ["ListQueues", "ListSubscriptions", "Status"])
@pytest.mark.parametrize("body", [b"", b"garbage", b"null", b"[" * 5000])
def test_three_operations_never_read_the_body(shared_api: Api, operation: str, body: bytes) -> None:
    assert shared_api.post(operation, body).status == 200


@pytest.mark.parametrize(
    "operation",
    [
        "Receive",
        "Complete",
        "CompleteBatch",
        "RenewBatch",
        "Abandon",
        "Reject",
        "Defer",
        "ReceiveDeferred",
        "Renew",
        "Schedule",
        "Cancel",
        "Peek",
        "Stats",
        "CreateQueue",
        "Subscribe",
        "TestFilter",
        "Redrive",
        "Purge",
        "DeleteQueue",
        "Unsubscribe",
        "PauseQueue",
        "ResumeQueue",
        "Release",
    ],
)
def test_every_other_operation_needs_an_object_and_a_name(shared_api: Api, operation: str) -> None:
    assert shared_api.post(operation, b"").status == 400
    assert shared_api.post(operation, b"[]").status == 400
    assert shared_api.post(operation, b'{"nope":1}').status == 400
    if operation != "TestFilter":
        expected = (409, "lock_lost") if operation in LEASED else (400, "invalid_argument")
        reply = shared_api.post(operation, b"{}")
        assert (reply.status, reply.code) in (expected, (400, "invalid_argument"))


LEASED = ("Complete", "Abandon", "Release", "Reject", "Defer")


def test_a_long_name_is_not_answered_in_full(shared_api: Api) -> None:
    reply = shared_api.post("Stats", {"queue": "n" * 100_000})
    assert reply.status == 404
    assert len(reply.raw) < 1200


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_the_content_type_of_a_request_is_not_looked_at(shared_api: Api, content_type: str) -> None:
    headers = {**shared_api.headers, "Content-Type": content_type}
    reply = shared_api.request("POST", "/mqlite.v1.QueueService/Stats", b'{"queue":"q"}', headers)
    assert reply.status == 200

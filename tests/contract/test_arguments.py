"""Bad arguments are refused by name, and nothing happens."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

import mqlite
from contract.looks import NOBODY, SECOND, info, one, peeked
from contract.ways import World
from mqlite import OutMessage
from mqlite.api import MQ

Call = Callable[[MQ], object]

LONE_SURROGATE = "\ud800"
TOO_BIG = 2**63


def settings(**given: object) -> Call:
    return lambda mq: mq.create_queue("fresh", **given)  # type: ignore[arg-type]


def sending(**given: object) -> Call:
    return lambda mq: mq.send("q", b"", **given)  # type: ignore[arg-type]


def receiving(**given: object) -> Call:
    return lambda mq: mq.receive("q", **given)  # type: ignore[arg-type]


REFUSED: dict[str, list[tuple[str, Call]]] = {
    "name": [
        ("empty", lambda mq: mq.create_queue("")),
        ("256 bytes", lambda mq: mq.create_queue("x" * 256)),
        ("256 bytes of UTF-8", lambda mq: mq.create_queue("é" * 128)),
        ("control character", lambda mq: mq.create_queue("a\nb")),
        ("nul", lambda mq: mq.create_queue("a\x00")),
        ("delete character", lambda mq: mq.create_queue("a\x7f")),
        ("C1 control character", lambda mq: mq.create_queue("a\x85")),
        ("surrogate", lambda mq: mq.create_queue(LONE_SURROGATE)),
        ("number", lambda mq: mq.create_queue(7)),
        ("none", lambda mq: mq.create_queue(None)),
        ("empty subscription", lambda mq: mq.subscribe("t", "")),
        ("long subscription", lambda mq: mq.subscribe("t", "x" * 256)),
        ("empty deletion", lambda mq: mq.delete_queue("", generation="1")),
        ("empty pause", lambda mq: mq.pause_queue("")),
        ("empty resume", lambda mq: mq.resume_queue("")),
        ("empty unsubscription", lambda mq: mq.unsubscribe("t", "", generation="1")),
    ],
    "topic": [
        ("empty", lambda mq: mq.subscribe("", "s")),
        ("control character", lambda mq: mq.subscribe("a\tb", "s")),
        ("long", lambda mq: mq.subscribe("x" * 256, "s")),
        ("empty unsubscription", lambda mq: mq.unsubscribe("", "s", generation="1")),
    ],
    "queue": [
        ("send", lambda mq: mq.send("", b"")),
        ("send_batch", lambda mq: mq.send_batch("", [])),
        ("cancel", lambda mq: mq.cancel("", 1)),
        ("receive", lambda mq: mq.receive("")),
        ("receive_deferred", lambda mq: mq.receive_deferred("", [1])),
        ("complete", lambda mq: mq.complete("", 1, NOBODY)),
        ("complete_batch", lambda mq: mq.complete_batch("", [(1, NOBODY)])),
        ("abandon", lambda mq: mq.abandon("", 1, NOBODY)),
        ("reject", lambda mq: mq.reject("", 1, NOBODY)),
        ("release", lambda mq: mq.release("", 1, NOBODY)),
        ("defer", lambda mq: mq.defer("", 1, NOBODY)),
        ("renew", lambda mq: mq.renew("", 1, NOBODY)),
        ("renew_batch", lambda mq: mq.renew_batch("", [(1, NOBODY)])),
        ("peek", lambda mq: mq.peek("")),
        ("stats", lambda mq: mq.stats("")),
        ("redrive", lambda mq: mq.redrive("")),
        ("purge", lambda mq: mq.purge("")),
        ("surrogate", lambda mq: mq.stats(LONE_SURROGATE)),
        ("number", lambda mq: mq.send(7, b"")),
        ("none", lambda mq: mq.receive(None)),
    ],
    "generation": [
        ("empty", lambda mq: mq.delete_queue("q", generation="")),
        ("number", lambda mq: mq.delete_queue("q", generation=1)),
        ("empty unsubscription", lambda mq: mq.unsubscribe("topic", "sub", generation="")),
    ],
    "kind": [("unknown", settings(kind="topic")), ("number", settings(kind=1))],
    "setting": [("unknown", settings(no_such_setting=1))],
    "lock_duration": [
        ("zero", settings(lock_duration=0)),
        ("negative", settings(lock_duration="-1s")),
        ("text", settings(lock_duration="soon")),
        ("overflow", settings(lock_duration=1e18)),
        ("nan", settings(lock_duration=float("nan"))),
        ("flag", settings(lock_duration=True)),
    ],
    "max_delivery_count": [
        ("zero", settings(max_delivery_count=0)),
        ("negative", settings(max_delivery_count=-1)),
        ("text", settings(max_delivery_count="3")),
        ("fraction", settings(max_delivery_count=2.5)),
        ("flag", settings(max_delivery_count=True)),
        ("overflow", settings(max_delivery_count=TOO_BIG)),
    ],
    "default_ttl": [("negative", settings(default_ttl=-1)), ("text", settings(default_ttl="x"))],
    "dedup_window": [
        ("negative", settings(dedup_window=-1)),
        ("huge", settings(dedup_window=1e30)),
    ],
    "ordering_mode": [
        ("unknown", settings(ordering_mode="lifo")),
        ("none", settings(ordering_mode=1)),
    ],
    "dead_letter_on_expire": [("text", settings(dead_letter_on_expire="no"))],
    "dlq_max_age": [("negative", settings(dlq_max_age="-1s"))],
    "dlq_max_count": [
        ("below -1", settings(dlq_max_count=-2)),
        ("text", settings(dlq_max_count="1")),
        ("fraction", settings(dlq_max_count=1.5)),
        ("overflow", settings(dlq_max_count=TOO_BIG)),
    ],
    "dlq_max_bytes": [("below -1", settings(dlq_max_bytes=-2))],
    "retry_initial_delay": [("negative", settings(retry_initial_delay=-1))],
    "retry_max_delay": [
        ("below the initial", settings(retry_initial_delay="2s", retry_max_delay="1s")),
    ],
    "retry_multiplier": [
        ("below 1", settings(retry_multiplier=0.5)),
        ("infinite", settings(retry_multiplier=float("inf"))),
        ("nan", settings(retry_multiplier=float("nan"))),
        ("text", settings(retry_multiplier="2")),
    ],
    "retry_jitter": [
        ("negative", settings(retry_jitter=-0.1)),
        ("above 1", settings(retry_jitter=1.1)),
        ("nan", settings(retry_jitter=float("nan"))),
        ("text", settings(retry_jitter="0.1")),
    ],
    "max_counts": [("unknown", settings(max_counts="claims"))],
    "retain_completed": [("negative", settings(retain_completed=-1))],
    "keep_leases": [("text", settings(keep_leases="yes"))],
    "claim_order": [("unknown", settings(claim_order="random"))],
    "body": [
        ("number", lambda mq: mq.send("q", 7)),
        ("none", lambda mq: mq.send("q", None)),
        ("surrogate", lambda mq: mq.send("q", LONE_SURROGATE)),
        ("number in a batch", lambda mq: mq.send_batch("q", [b"", 7])),
        ("number in a message", lambda mq: mq.send_batch("q", [OutMessage(body=7)])),
    ],
    "messages": [
        ("bytes", lambda mq: mq.send_batch("q", b"ab")),
        ("text", lambda mq: mq.send_batch("q", "ab")),
        ("one message", lambda mq: mq.send_batch("q", OutMessage())),
        ("none", lambda mq: mq.send_batch("q", None)),
        ("513 renewals", lambda mq: mq.renew_batch("q", [(1, NOBODY)] * 513)),
    ],
    "at": [
        ("naive", sending(at=datetime(2030, 1, 1))),
        ("negative", sending(at="-1s")),
        ("text", sending(at="tomorrow")),
        ("list", sending(at=[])),
        ("overflow", sending(at="9223372036854775807ms")),
    ],
    "ttl": [
        ("zero", sending(ttl=0)),
        ("negative", sending(ttl=timedelta(seconds=-1))),
        ("text", sending(ttl="soon")),
        ("overflow", sending(ttl=2**63 / 1000)),
    ],
    "message_id": [
        ("surrogate", sending(message_id=LONE_SURROGATE)),
        ("int", sending(message_id=1)),
    ],
    "group_id": [("surrogate", sending(group_id=LONE_SURROGATE)), ("int", sending(group_id=1))],
    "subject": [("surrogate", sending(subject=LONE_SURROGATE)), ("int", sending(subject=1))],
    "correlation_id": [("int", sending(correlation_id=1))],
    "reply_to": [("int", sending(reply_to=1))],
    "content_type": [("int", sending(content_type=1))],
    "properties": [
        ("int value", sending(properties={"k": 1})),
        ("int key", sending(properties={1: "v"})),
        ("surrogate", sending(properties={"k": LONE_SURROGATE})),
        ("list", sending(properties=["k"])),
    ],
    "priority": [
        ("above", sending(priority=1001)),
        ("below", sending(priority=-1001)),
        ("text", sending(priority="1")),
        ("fraction", sending(priority=1.0)),
        ("flag", sending(priority=True)),
    ],
    "max_messages": [
        ("zero", receiving(max_messages=0)),
        ("negative", receiving(max_messages=-1)),
        ("257", receiving(max_messages=257)),
        ("text", receiving(max_messages="1")),
        ("flag", receiving(max_messages=True)),
        ("peek zero", lambda mq: mq.peek("q", max_messages=0)),
        ("peek 1001", lambda mq: mq.peek("q", max_messages=1001)),
        ("redrive negative", lambda mq: mq.redrive("q", max_messages=-1)),
        ("purge negative", lambda mq: mq.purge("q", max_messages=-1)),
        ("redrive text", lambda mq: mq.redrive("q", max_messages="1")),
    ],
    "wait": [
        ("negative", receiving(wait=-1)),
        ("above 20 s", receiving(wait=20.001)),
        ("text", receiving(wait="soon")),
    ],
    "mode": [("unknown", receiving(mode="peek")), ("number", receiving(mode=1))],
    "attempt_id": [
        ("surrogate", receiving(attempt_id=LONE_SURROGATE)),
        ("number", receiving(attempt_id=1)),
    ],
    "seq_number": [
        ("cancel text", lambda mq: mq.cancel("q", "1")),
        ("cancel overflow", lambda mq: mq.cancel("q", TOO_BIG)),
        ("complete overflow", lambda mq: mq.complete("q", TOO_BIG, NOBODY)),
        ("abandon text", lambda mq: mq.abandon("q", "1", NOBODY)),
        ("renew overflow", lambda mq: mq.renew("q", -TOO_BIG - 1, NOBODY)),
        ("batch overflow", lambda mq: mq.complete_batch("q", [(TOO_BIG, NOBODY)])),
        ("renewals overflow", lambda mq: mq.renew_batch("q", [(TOO_BIG, NOBODY)])),
    ],
    "seq_numbers": [
        ("257", lambda mq: mq.receive_deferred("q", range(257))),
        ("text", lambda mq: mq.receive_deferred("q", ["1"])),
        ("overflow", lambda mq: mq.receive_deferred("q", [TOO_BIG])),
        ("one number", lambda mq: mq.receive_deferred("q", 5)),
        ("none", lambda mq: mq.receive_deferred("q", None)),
    ],
    "leases": [
        ("one number", lambda mq: mq.complete_batch("q", 5)),
        ("numbers", lambda mq: mq.complete_batch("q", [5])),
        ("three parts", lambda mq: mq.complete_batch("q", [(1, NOBODY, 2)])),
        ("text", lambda mq: mq.renew_batch("q", ["ab"])),
        ("none", lambda mq: mq.renew_batch("q", None)),
    ],
    "lock_token": [
        ("number", lambda mq: mq.complete("q", 1, 7)),
        ("surrogate", lambda mq: mq.complete("q", 1, LONE_SURROGATE)),
        ("batch surrogate", lambda mq: mq.complete_batch("q", [(1, LONE_SURROGATE)])),
        ("renewals surrogate", lambda mq: mq.renew_batch("q", [(1, LONE_SURROGATE)])),
    ],
    "reason": [
        ("surrogate", lambda mq: mq.reject("q", 1, NOBODY, reason=LONE_SURROGATE)),
        ("number", lambda mq: mq.reject("q", 1, NOBODY, reason=7)),
    ],
    "description": [
        ("surrogate", lambda mq: mq.reject("q", 1, NOBODY, description=LONE_SURROGATE)),
    ],
    "delay": [
        ("negative", lambda mq: mq.abandon("q", 1, NOBODY, delay=-1)),
        ("text", lambda mq: mq.abandon("q", 1, NOBODY, delay="soon")),
    ],
    "from_seq": [
        ("negative", lambda mq: mq.peek("q", from_seq=-1)),
        ("text", lambda mq: mq.peek("q", from_seq="1")),
        ("overflow", lambda mq: mq.peek("q", from_seq=TOO_BIG)),
    ],
    "state": [("unknown", lambda mq: mq.peek("q", state="completed"))],
    "target": [("number", lambda mq: mq.redrive("q", target=7))],
    "older_than": [
        ("redrive", lambda mq: mq.redrive("q", older_than=-1)),
        ("purge", lambda mq: mq.purge("q", older_than="-1s")),
    ],
    "rate_per_second": [
        ("negative", lambda mq: mq.redrive("q", rate_per_second=-1)),
        ("text", lambda mq: mq.redrive("q", rate_per_second="1")),
    ],
    "expr": [("number", lambda mq: mq.subscribe("t", "s", expr=7))],
}


def wrong_answer(mq: MQ, field: str, call: Call) -> str:
    """How the call ended, if not by a refusal that names the field."""
    try:
        call(mq)
    except mqlite.InvalidArgument as refusal:
        return "" if field in str(refusal) else f"refused without the name: {refusal}"
    except Exception as error:
        return repr(error)
    return "accepted"


@pytest.mark.parametrize("field", REFUSED)
def test_a_bad_argument_is_refused_by_name_and_nothing_happens(mq: MQ, field: str) -> None:
    mq.create_queue("q")
    mq.subscribe("topic", "sub")
    mq.send("q", b"a")
    one(mq, "q").reject()
    before = (mq.list_queues(), mq.list_subscriptions(), mq.peek("q"))
    wrong = {case: wrong_answer(mq, field, call) for case, call in REFUSED[field]}
    assert {case: answer for case, answer in wrong.items() if answer} == {}
    assert (mq.list_queues(), mq.list_subscriptions(), mq.peek("q")) == before


def test_an_invalid_argument_is_also_a_value_error(mq: MQ) -> None:
    with pytest.raises(ValueError, match="name"):
        mq.create_queue("")


@pytest.mark.parametrize(
    ("given", "ms"),
    [
        (45, 45_000),
        (1.5, 1500),
        (0.0001, 1),
        ("45s", 45_000),
        ("1d12h", 36 * 3600 * SECOND),
        ("1.5h", 5400 * SECOND),
        ("1h15m30.918s", 4_530_918),
        ("2w", 14 * 86400 * SECOND),
        ("1us", 1),
        (timedelta(minutes=2), 120_000),
        (timedelta(microseconds=1), 1),
    ],
)
def test_a_duration_is_a_number_of_seconds_text_or_a_timedelta(
    mq: MQ, given: object, ms: int
) -> None:
    mq.create_queue("q", lock_duration=given)
    assert info(mq, "q").config.lock_duration_ms == ms


@pytest.mark.parametrize("given", ["", "1", "s", "1 s", "1s2", "1x", "--1s", "1e3s", "\u0661s"])
def test_text_that_is_no_duration_is_refused(mq: MQ, given: str) -> None:
    with pytest.raises(mqlite.InvalidArgument, match="lock_duration"):
        mq.create_queue("q", lock_duration=given)


def test_the_largest_numbers_that_fit_are_accepted(world: World) -> None:
    mq = world.mq
    mq.create_queue("q", lock_duration=2**62 // 1000, max_delivery_count=2**31 - 1)
    seq = mq.send("q", b"a", ttl=2**61 // 1000)
    assert one(mq, "q").locked_until_ms > world.clock.now()
    assert peeked(mq, "q", seq).expires_at_ms > world.clock.now()


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_delay_that_ends_beyond_64_bits_is_refused(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    mq.send("q", b"a")
    message = one(mq, "q")
    with pytest.raises(mqlite.InvalidArgument, match="delay"):
        message.abandon(delay=(2**63 - 1) // 1000)
    message.complete()

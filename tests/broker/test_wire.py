"""The contract's structs: what is decoded, what is refused, what comes back."""

from __future__ import annotations

import msgspec
import pytest

from mqlite import wire
from mqlite.errors import InvalidArgument, MessageTooLarge
from mqlite.model import OutMessage, QueueConfig, QueueInfo, StoreStatus

REQUESTS = [
    kind
    for kind in vars(wire).values()
    if isinstance(kind, type) and issubclass(kind, wire.Request)
]


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("", b""),
        ("AA==", b"\x00"),
        ("AB==", b"\x00"),  # bits left over
        ("aGk=\n", b"hi"),
        ("aG\r\nk=", b"hi"),
        ("+/+/", b"\xfb\xff\xbf"),
    ],
)
def test_base64_that_is_taken(text: str, body: bytes) -> None:
    assert wire.decode_body(text, 10) == body


@pytest.mark.parametrize(
    "text",
    [
        "AA",
        "AA=",
        "A",
        "=",
        "====",
        "AAAA=",
        "AAAA====",
        "AA==AA==",
        "-_-_",
        "aG k",
        "aGk=\t",
        "ÿÿÿÿ",
        "A=AA",
    ],
)
def test_base64_that_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="body is not base64"):
        wire.decode_body(text, 100)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 6])
def test_the_size_limit_is_exact(size: int) -> None:
    text = wire.wire_message(OutMessage(body=b"x" * size)).body or ""
    assert wire.decode_body(text, size) == b"x" * size
    if size:
        with pytest.raises(MessageTooLarge, match=f"body is {size} bytes, the limit is {size - 1}"):
            wire.decode_body(text, size - 1)


def test_an_oversized_body_is_refused_before_it_is_decoded() -> None:
    with pytest.raises(MessageTooLarge):
        wire.decode_body("!" * 100, 10)


def test_line_breaks_do_not_count_towards_the_size() -> None:
    assert wire.decode_body("a\r\nG\r\nk\r\n=\r\n", 2) == b"hi"


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
def test_null_is_the_same_as_absent_for_every_field(kind: type[wire.Request]) -> None:
    decoder = msgspec.json.Decoder(kind)
    nulls = msgspec.json.encode(dict.fromkeys(kind.__struct_fields__))
    assert wire.decode(decoder, nulls) == wire.decode(decoder, b"{}")


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
def test_unknown_fields_and_other_spellings_are_refused(kind: type[wire.Request]) -> None:
    decoder = msgspec.json.Decoder(kind)
    for name in ["nope", *(field.upper() for field in kind.__struct_fields__)]:
        with pytest.raises(InvalidArgument, match="unknown field"):
            wire.decode(decoder, msgspec.json.encode({name: None}))


@pytest.mark.parametrize(
    ("kind", "body", "known"),
    [
        (wire.ReceiveRequest, b'{"wait_ms":1}', "it may have queue, max_messages, wait_time_ms"),
        (wire.CreateQueueRequest, b'{"lock_duration_ms":1}', "it may have name, config"),
        (wire.CreateQueueRequest, b'{"config":{"lock":1}}', "it may have kind, lock_duration_ms"),
        (wire.SendRequest, b'{"messages":[{},{"text":1}]}', "it may have body, message_id"),
    ],
)
def test_a_misspelled_field_is_answered_with_the_known_ones(
    kind: type[wire.Request], body: bytes, known: str
) -> None:
    with pytest.raises(InvalidArgument, match=f"unknown field `[a-z_]+`.*: {known}"):
        wire.decode(msgspec.json.Decoder(kind), body)


@pytest.mark.parametrize("name", ["a` - at `$.x.y", "a` - at `$.queue", "` - at `$" * 100_000])
def test_a_field_named_like_the_text_of_the_error(name: str) -> None:
    with pytest.raises(InvalidArgument, match="unknown field"):
        wire.decode(msgspec.json.Decoder(wire.SendRequest), msgspec.json.encode({name: 1}))


def test_a_message_survives_the_way_to_the_wire_and_back() -> None:
    message = OutMessage(
        body=b"\x00\xff",
        message_id="m",
        group_id="g",
        subject="s",
        correlation_id="c",
        reply_to="r",
        content_type="t",
        properties={"b": "2", "a": ""},
        priority=-7,
    )
    assert wire.out_message(wire.wire_message(message), 10) == message


def test_an_empty_message_is_an_empty_object() -> None:
    assert msgspec.json.encode(wire.wire_message(OutMessage())) == b"{}"


def test_a_null_property_is_an_empty_one() -> None:
    message = wire.WireMessage(properties={"k": None})
    assert wire.out_message(message, 10).properties == {"k": ""}


def test_queue_settings_survive_the_listing() -> None:
    info = QueueInfo(
        name="q",
        kind="subscription",
        generation="7",
        paused=True,
        config=QueueConfig(ordering_mode="strict_fifo", dlq_max_count=-1, retry_jitter=0.5),
    )
    assert wire.QueueEntry.of(info).info() == info


def test_a_listing_of_a_broker_that_reports_six_fields_can_be_read() -> None:
    entry = msgspec.json.decode(
        b'{"name":"q","kind":"queue","lock_duration_ms":1,"max_delivery_count":2,'
        b'"default_ttl_ms":3,"dedup_window_ms":4}',
        type=wire.QueueEntry,
    )
    assert entry.info().config == QueueConfig(
        lock_duration_ms=1, max_delivery_count=2, default_ttl_ms=3, dedup_window_ms=4
    )


def test_a_status_survives_the_wire() -> None:
    status = StoreStatus(
        backend="memory",
        location=":memory:",
        schema_version="py1",
        ping_ms=-1,
        db_size_bytes=0,
        queues=1,
        subscriptions=2,
        pragmas={"synchronous": 1},
        warnings=["slow"],
    )
    answer = wire.StatusResponse.of(status, version="1", uptime_ms=5, auth=False)
    again = msgspec.json.decode(wire.encode(answer), type=wire.StatusResponse)
    assert again.status() == status
    assert (again.version, again.uptime_ms, again.auth) == ("1", 5, False)


def test_an_answer_is_one_line() -> None:
    assert wire.encode(wire.SettleResponse()) == b'{"ok":true}\n'

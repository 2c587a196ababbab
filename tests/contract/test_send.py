"""What a send accepts, keeps and refuses."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

import mqlite
from contract.looks import SECOND, bodies, counts, one, peeked, seqs
from contract.ways import World
from mqlite import OutMessage
from mqlite.api import MQ
from mqlite.model import MAX_MESSAGE_BYTES

FIELDS = {
    "message_id": "id-1",
    "group_id": "group-1",
    "subject": "orders.created",
    "correlation_id": "correlation-1",
    "reply_to": "replies",
    "content_type": "application/json",
    "properties": {"tenant": "a", "empty": "", "naïve": "日本語 🐝"},
    "priority": 7,
}


def test_every_field_comes_back(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    seq = mq.send("q", b"\x00body\x00", **FIELDS)
    seen = peeked(mq, "q", seq)
    received = one(mq, "q")
    for message in (seen, received):
        for name, value in FIELDS.items():
            assert getattr(message, name) == value, name
        assert message.body == b"\x00body\x00"
        assert message.enqueued_at_ms == world.clock.now()


def test_every_field_of_a_batch_comes_back(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send_batch("q", [OutMessage(body=b"a", **FIELDS), OutMessage(body=b"b", subject="s")])
    first, second = mq.receive("q", max_messages=2)
    assert {name: getattr(first, name) for name in FIELDS} == FIELDS
    assert (second.subject, second.properties, second.priority) == ("s", {}, 0)


@pytest.mark.parametrize("body", [b"", "", bytearray()], ids=["bytes", "text", "bytearray"])
def test_an_empty_body_is_legal(mq: MQ, body: bytes) -> None:
    mq.create_queue("q")
    seq = mq.send("q", body)
    assert peeked(mq, "q", seq).body == b""
    assert one(mq, "q").body == b""


@pytest.mark.parametrize(
    "body",
    [bytes(range(256)), b"\xff\xfe\xed\xa0\x80", "snow ☃ 🐝".encode(), memoryview(b"view")],
    ids=["all-bytes", "invalid-utf8", "utf8", "memoryview"],
)
def test_a_body_is_opaque_bytes(mq: MQ, body: bytes) -> None:
    mq.create_queue("q")
    mq.send("q", body)
    assert one(mq, "q").body == bytes(body)


def test_text_is_sent_as_utf8(mq: MQ) -> None:
    mq.create_queue("q")
    mq.send("q", "žluťoučký")
    assert one(mq, "q").body == "žluťoučký".encode()


def test_strange_text_in_metadata_comes_back_unchanged(mq: MQ) -> None:
    mq.create_queue("q")
    text = 'tab\t newline\n quote" backslash\\ nul\x00 <&>\u2028\u2029 \U0001f41d \u00e9 e\u0301'
    mq.send("q", "a", subject=text, group_id=text, properties={text: text, "": "empty key"})
    message = one(mq, "q")
    assert (message.subject, message.group_id) == (text, text)
    assert message.properties == {text: text, "": "empty key"}


def test_a_body_of_the_default_limit_passes_and_one_byte_more_does_not(mq: MQ) -> None:
    assert MAX_MESSAGE_BYTES == 1024 * 1024
    mq.create_queue("q")
    body = b"\xa5" * MAX_MESSAGE_BYTES
    mq.send("q", body)
    with pytest.raises(mqlite.MessageTooLarge):
        mq.send("q", body + b"x")
    assert one(mq, "q").body == body
    assert counts(mq, "q") == {"locked": 1}


def test_the_body_limit_can_be_set(make_world: Callable[..., World]) -> None:
    mq = make_world(max_message_bytes=10).mq
    mq.create_queue("q")
    mq.send("q", b"x" * 10)
    with pytest.raises(mqlite.MessageTooLarge):
        mq.send("q", b"x" * 11)
    assert counts(mq, "q") == {"active": 1}


def test_one_body_over_the_limit_refuses_the_whole_batch(
    make_world: Callable[..., World],
) -> None:
    mq = make_world(max_message_bytes=10).mq
    mq.create_queue("q")
    with pytest.raises(mqlite.MessageTooLarge):
        mq.send_batch("q", [b"a", b"x" * 11, b"b"])
    assert counts(mq, "q") == {}


def test_a_body_over_the_limit_is_refused_before_the_queue_is_looked_up(
    make_world: Callable[..., World],
) -> None:
    mq = make_world(max_message_bytes=10).mq
    with pytest.raises(mqlite.MessageTooLarge):
        mq.send("nowhere", b"x" * 11)


def test_an_unknown_queue_is_not_found_before_groups_are_checked(mq: MQ) -> None:
    with pytest.raises(mqlite.NotFound):
        mq.send("nowhere", b"a")
    with pytest.raises(mqlite.NotFound):
        mq.send_batch("nowhere", [b"a", b"b"])


def test_an_empty_send_answers_nothing_but_looks_at_the_queue(mq: MQ) -> None:
    mq.create_queue("q")
    assert mq.send_batch("q", []) == []
    with pytest.raises(mqlite.NotFound):
        mq.send_batch("nowhere", [])


def test_a_batch_answers_a_number_for_each_message_in_order(mq: MQ) -> None:
    mq.create_queue("q")
    sent = mq.send_batch("q", [b"a", "b", OutMessage(body=b"c")])
    assert sent == [1, 2, 3]
    received = mq.receive("q", max_messages=3)
    assert (seqs(received), bodies(received)) == (sent, [b"a", b"b", b"c"])


def test_a_batch_takes_any_iterable(mq: MQ) -> None:
    mq.create_queue("q")
    assert mq.send_batch("q", (b"%d" % n for n in range(5))) == [1, 2, 3, 4, 5]


def test_sequence_numbers_come_from_one_counter_for_all_queues(mq: MQ) -> None:
    mq.create_queue("a")
    mq.create_queue("b")
    assert [mq.send(queue, b"") for queue in ("a", "b", "a")] == [1, 2, 3]


def test_a_batch_with_a_missing_group_is_refused_as_a_whole(mq: MQ) -> None:
    mq.create_queue("q", ordering_mode="group_fifo")
    with pytest.raises(mqlite.GroupRequired):
        mq.send_batch("q", [OutMessage(body=b"a", group_id="g"), OutMessage(body=b"b")])
    assert counts(mq, "q") == {}
    assert len(mq.send_batch("q", [OutMessage(body=b"a", group_id="g")] * 2)) == 2


def test_an_ungrouped_message_is_refused_by_a_group_fifo_queue(mq: MQ) -> None:
    mq.create_queue("q", ordering_mode="group_fifo")
    with pytest.raises(mqlite.GroupRequired):
        mq.send("q", b"a")
    assert counts(mq, "q") == {}
    mq.send("q", b"a", group_id="g")
    assert counts(mq, "q") == {"active": 1}


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 1025, 4096, 65_537, 300_000])
def test_bodies_of_every_size_survive_a_redelivery(mq: MQ, size: int) -> None:
    body = hashlib.shake_256(b"%d" % size).digest(size)
    mq.create_queue("q")
    mq.send("q", body, properties={"digest": hashlib.sha256(body).hexdigest()})
    one(mq, "q").abandon()
    message = one(mq, "q")
    assert message.body == body
    assert message.properties["digest"] == hashlib.sha256(body).hexdigest()


def test_a_message_takes_its_time_from_the_clock_at_the_send(world: World) -> None:
    mq = world.mq
    mq.create_queue("q")
    first = mq.send("q", b"")
    world.clock.advance(SECOND)
    second = mq.send("q", b"")
    taken = [peeked(mq, "q", seq).enqueued_at_ms for seq in (first, second)]
    assert taken == [world.clock.now() - SECOND, world.clock.now()]
    assert peeked(mq, "q", second).visible_at_ms == world.clock.now()


@pytest.mark.parametrize(
    "name", ["q", "a b", "naïve/日本語🐝", "x" * 255, "é" * 127, "%2F?#&=", "."]
)
def test_a_queue_may_have_any_name_of_1_to_255_bytes(mq: MQ, name: str) -> None:
    mq.create_queue(name)
    mq.send(name, b"a")
    one(mq, name).complete()
    assert mq.stats(name).queue == name
    assert [entry.name for entry in mq.list_queues()] == [name]


def test_names_differ_by_case_and_by_composition(mq: MQ) -> None:
    names = sorted(["q", "Q", "q ", "\u00e9", "e\u0301"], key=str.encode)
    for name in names:
        mq.create_queue(name)
    assert [entry.name for entry in mq.list_queues()] == names

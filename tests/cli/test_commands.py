"""The commands, on an embedded database, in both forms of output."""

from __future__ import annotations

import base64
import io
import json
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import mqlite
from mqlite.cli import messages
from mqlite.cli.streams import CommandError
from mqlite.cli.times import read_time

from .conftest import Run

Ok = Callable[..., str]


@pytest.fixture
def document(ok: Ok) -> Callable[..., Any]:
    """What a command prints in its JSON form."""

    def run(*args: str) -> Any:
        return json.loads(ok(*args, "--output", "json"))

    return run


def token_of(line: str) -> str:
    return line.partition("lock-token=")[2].split()[0]


def test_the_life_of_a_message(ok: Ok) -> None:
    assert ok("create-queue", "orders") == "ok: action=create-queue queue=orders\n"
    assert ok("send", "orders", "hello", "world") == "ok: queue=orders seq=1\n"
    assert ok("peek", "orders") == 'seq=1 state=active deliveries=0 body="hello world"\n'
    assert ok("metrics", "orders").startswith(
        "queue=orders active=1 locked=0 deferred=0 scheduled=0 dead=0 total=1 oldest="
    )
    assert ok("receive", "orders") == 'seq=1 deliveries=1 body="hello world"\n'
    assert ok("receive", "orders") == "(no messages)\n"
    assert ok("peek", "orders") == "(empty)\n"
    assert ok("delete-queue", "orders") == "ok: action=delete-queue queue=orders\n"
    assert ok("list") == "(no queues)\n"


def test_a_queue_that_still_holds_messages_says_which_and_what_to_do(
    cli: Run, mq: mqlite.Embedded
) -> None:
    mq.create_queue("q", keep_leases=True)
    for verb in ("complete", "defer", "reject", "renew"):
        mq.send("q", verb)
        [message] = mq.receive("q")
        getattr(message, verb)()
    mq.send("q", at="1h")
    mq.send_batch("q", ["active"] * 1001)
    mq.subscribe("t", "s")
    mq.send("t")
    mq.close()
    assert cli("delete-queue", "q") == (
        1,
        "",
        "error: 'q' still holds messages: more than 1000 active (receive and complete), 1 locked"
        " (complete), 1 deferred (receive by number and complete), 1 scheduled (cancel),"
        " 1 dead_lettered (purge or redrive)\n",
    )
    assert cli("unsubscribe", "t", "s").err == (
        "error: 's' still holds messages: 1 active (receive and complete)\n"
    )


def test_listing_queues(ok: Ok, document: Callable[..., Any]) -> None:
    ok("create-queue", "orders", "--lock", "1m", "--max-delivery", "5", "--dedup", "10m")
    ok("create-queue", "orders", "--lock", "1m", "--max-delivery", "5", "--ttl", "7d")
    assert ok("list") == (
        "orders                   kind=queue        lock=60000ms maxdc=5 ttl=604800000ms dedup=0ms\n"
    )
    [entry] = document("list")
    assert list(entry)[:6] == [
        "name",
        "kind",
        "lock_duration_ms",
        "max_delivery_count",
        "default_ttl_ms",
        "dedup_window_ms",
    ]
    assert entry["generation"]


def test_every_setting_of_a_queue(ok: Ok, document: Callable[..., Any]) -> None:
    given = {
        "--lock": ("45s", "lock_duration_ms", 45_000),
        "--max-delivery": ("3", "max_delivery_count", 3),
        "--ttl": ("2w", "default_ttl_ms", 1_209_600_000),
        "--dedup": ("1h30m", "dedup_window_ms", 5_400_000),
        "--ordering": ("strict_fifo", "ordering_mode", "strict_fifo"),
        "--dlq-max-age": ("-1", "dlq_max_age_ms", -1),
        "--dlq-max-count": ("-1", "dlq_max_count", -1),
        "--dlq-max-bytes": ("1000", "dlq_max_bytes", 1000),
        "--retry-initial-delay": ("1s", "retry_initial_delay_ms", 1000),
        "--retry-max-delay": ("1m", "retry_max_delay_ms", 60_000),
        "--retry-multiplier": ("3", "retry_multiplier", 3.0),
        "--retry-jitter": ("0.5", "retry_jitter", 0.5),
        "--max-counts": ("failures", "max_counts", "failures"),
        "--retain-completed": ("1d", "retain_completed_ms", 86_400_000),
        "--claim-order": ("due_time", "claim_order", "due_time"),
    }
    words = [word for flag, (value, _, _) in given.items() for word in (flag, value)]
    ok("create-queue", "q", *words, "--dead-letter-on-expire=false", "--keep-leases")
    [entry] = document("list")
    assert {name: entry[name] for _, name, _ in given.values()} == {
        name: value for _, name, value in given.values()
    }
    assert entry["dead_letter_on_expire"] is False
    assert entry["keep_leases"] is True


def test_zero_takes_the_default_and_extensions_keep_their_value(
    ok: Ok, document: Callable[..., Any]
) -> None:
    ok("create-queue", "q", "--lock", "5s", "--max-delivery", "2", "--keep-leases")
    ok("create-queue", "q", "--lock", "0", "--max-delivery", "0")
    [entry] = document("list")
    assert entry["lock_duration_ms"] == 30_000
    assert entry["max_delivery_count"] == 10
    assert entry["keep_leases"] is True


def test_the_kind_of_a_queue(cli: Run, ok: Ok) -> None:
    ok("create-queue", "backing", "--kind", "subscription")
    assert "kind=subscription" in ok("list")
    assert "error: " in cli("create-queue", "backing").err


def test_subscriptions(ok: Ok, document: Callable[..., Any]) -> None:
    assert ok("list-subscriptions") == "(no subscriptions)\n"
    assert document("list-subscriptions") == []
    assert ok("subscribe", "events", "eu") == (
        "ok: action=subscribe subscription=eu topic=events\n"
    )
    ok("create-subscription", "events", "us", "--expr", "  ")
    assert ok("list-subscriptions") == (
        "eu                   topic=events               filter=(match all)\n"
        "us                   topic=events               filter=(match all)\n"
    )
    assert document("list-subscriptions") == [
        {"topic": "events", "name": "eu"},
        {"topic": "events", "name": "us"},
    ]
    ok("send", "events", "hello")
    assert 'body="hello"' in ok("receive", "us")
    assert 'body="hello"' in ok("receive", "eu")
    assert ok("unsubscribe", "events", "us") == (
        "ok: action=unsubscribe subscription=us topic=events\n"
    )


def test_pausing(ok: Ok) -> None:
    ok("create-queue", "q")
    ok("send", "q", "x")
    assert ok("pause", "q") == "ok: action=pause queue=q\n"
    assert ok("list").endswith(" paused\n")
    assert ok("receive", "q") == "(no messages)\n"
    assert ok("resume", "q") == "ok: action=resume queue=q\n"
    assert ok("receive", "q").startswith("seq=1 ")


def test_settling_a_message_that_stays_locked(
    cli: Run, ok: Ok, document: Callable[..., Any]
) -> None:
    ok("create-queue", "q", "--keep-leases")
    ok("send", "q", "x")

    token = token_of(ok("receive", "q", "--no-ack"))
    assert ok("renew", "q", "1", token) == "ok: action=renew queue=q seq=1\n"
    assert ok("abandon", "q", "1", token) == "ok: action=abandon queue=q seq=1\n"

    held = ok("receive", "q", "--no-ack")
    assert held.startswith("seq=1 deliveries=2 ")
    assert ok("release", "q", "1", token_of(held)) == "ok: action=release queue=q seq=1\n"
    held = ok("receive", "q", "--no-ack")
    assert held.startswith("seq=1 deliveries=2 ")
    assert ok("abandon", "q", "1", token_of(held), "--snooze") == (
        "ok: action=abandon queue=q seq=1\n"
    )
    [message] = document("peek", "q")
    assert message["failure_count"] == 1

    token = token_of(ok("receive", "q", "--no-ack"))
    assert ok("defer", "q", "1", token) == "ok: action=defer queue=q seq=1\n"
    line = ok("receive-deferred", "q", "--seq", " 1, ,7")
    assert line.startswith("seq=1 deliveries=4 lock-token=")

    rejected = ok("reject", "q", "1", token_of(line), "--reason", "bad", "--detail", "very")
    assert rejected == "ok: action=reject queue=q seq=1\n"
    assert ok("peek", "q").endswith(" reason=bad detail=very\n")
    assert ok("redrive", "q") == "ok: action=redrive moved=1\n"

    token = token_of(ok("receive", "q", "--no-ack"))
    assert ok("complete", "q", "1", token) == "ok: action=complete queue=q seq=1\n"
    assert cli("renew", "q", "1", token).code == 1


@pytest.mark.parametrize("numbers", ["", " , ", "0", "-1", "x", "1,x"])
def test_receive_deferred_wants_positive_numbers(cli: Run, numbers: str) -> None:
    result = cli("receive-deferred", "q", f"--seq={numbers}")
    assert (result.code, result.out) == (1, "")


def test_mutations_print_the_same_keys_in_json(ok: Ok, document: Callable[..., Any]) -> None:
    assert document("create-queue", "q") == {"action": "create-queue", "queue": "q"}
    assert document("send", "q", "x") == {"queue": "q", "seq": 1}
    scheduled = document("schedule", "q", "x", "--at", "2100-01-02T03:04:05.5+01:00")
    assert scheduled == {"queue": "q", "seq": 2, "at": "2100-01-02T02:04:05.5Z"}
    assert document("cancel", "q", "2") == {"action": "cancel", "queue": "q", "seq": 2}
    assert document("subscribe", "t", "s") == {
        "action": "subscribe",
        "subscription": "s",
        "topic": "t",
    }
    assert document("redrive", "q") == {"action": "redrive", "moved": 0}
    assert document("purge-dlq", "q", "--all") == {"action": "purge-dlq", "purged": 0}


def test_a_received_message_has_the_fields_of_the_wire(
    ok: Ok, document: Callable[..., Any]
) -> None:
    ok("create-queue", "q")
    ok(
        *("send", "q", "--message-id=m", "--group=g", "--subject=s", "--reply-to=r", "body"),
        *("--correlation-id=c", "--content-type=text/plain", "--prop", "a=1, b = 2", "--prop=c=3"),
        *("--priority", "-7", "--ttl", "1h"),
    )
    [message] = document("receive", "q")
    known = {
        "delivery_count": 1,
        "message_id": "m",
        "group_id": "g",
        "subject": "s",
        "reply_to": "r",
        "correlation_id": "c",
        "content_type": "text/plain",
        "properties": {"a": "1", "b": " 2", "c": "3"},
        "priority": -7,
        "body": base64.b64encode(b"body").decode(),
    }
    assert {name: message[name] for name in known} == known
    assert set(message) - set(known) == {
        "seq_number",
        "enqueued_at_ms",
        "locked_until_ms",
        "lease_ms",
    }


def test_the_lock_token_is_shown_only_where_it_is_needed(
    ok: Ok, document: Callable[..., Any]
) -> None:
    ok("create-queue", "q")
    ok("send", "q", "x")
    assert document("receive", "q", "--no-ack")[0]["lock_token"]
    assert "lock_token" not in document("receive", "q")[0]
    assert document("receive", "q") == []
    assert document("peek", "q") == []


def test_a_peeked_message_shows_its_state(ok: Ok, document: Callable[..., Any]) -> None:
    ok("create-queue", "q")
    ok("schedule", "q", "x", "--at", "1h", "--ttl", "1h", "--reply-to", "r")
    [message] = document("peek", "q", "--state", "scheduled", "--from", "1", "--max", "5")
    assert message["state"] == "scheduled"
    assert message["expires_at_ms"] - message["visible_at_ms"] == 3_600_000
    assert message["reply_to"] == "r"
    assert "lock_token" not in message


def test_a_receive_retried_under_its_attempt_id_gets_the_same_batch(ok: Ok) -> None:
    ok("create-queue", "q", "--keep-leases")
    ok("send", "q", "x")
    first = ok("receive", "q", "--no-ack", "--attempt-id", "a")
    assert ok("receive", "q", "--no-ack", "--attempt-id", "a") == first


def test_bodies_are_printed_as_one_safe_line(ok: Ok, tmp_path: Path) -> None:
    ok("create-queue", "q")
    body = tmp_path / "body"
    body.write_bytes(b'\x1b[31m"\n\\\xff\x00 caf\xc3\xa9 \xc2\x85')
    ok("send", "q", "--file", str(body))
    line = ok("receive", "q")
    assert line.endswith(r'body="\x1b[31m\"\n\\\xff\x00 café \u0085"' + "\n")


def test_a_group_with_blanks_is_quoted(ok: Ok) -> None:
    ok("create-queue", "q")
    ok("send", "q", "x", "--group", 'a b="c"')
    assert r' group="a b=\"c\"" ' in ok("receive", "q")


def test_the_words_after_dash_dash_are_the_body(ok: Ok) -> None:
    ok("create-queue", "q")
    ok("send", "q", "--", "--file", "-x")
    assert 'body="--file -x"' in ok("receive", "q")


def test_a_body_from_standard_input(
    ok: Ok, process: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    ok("create-queue", "q")
    assert process("send", "q", "-", input=" kept as it is\n").returncode == 0
    assert ok("receive", "q") == 'seq=1 deliveries=1 body=" kept as it is\\n"\n'


def test_an_empty_body_is_fine(ok: Ok) -> None:
    ok("create-queue", "q")
    ok("send", "q", "")
    assert ok("receive", "q") == 'seq=1 deliveries=1 body=""\n'


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "no body"),
        (("-", "more"), "'-' reads the whole body from standard input"),
        (("word", "--file", "x"), "either as words or with --file"),
        (("--file", "/no/such/file"), "/no/such/file: No such file or directory"),
        (("x", "--prop", "novalue"), "--prop takes k=v,k=v, got 'novalue'"),
    ],
)
def test_bodies_that_cannot_be_read(cli: Run, words: tuple[str, ...], problem: str) -> None:
    result = cli("send", "q", *words)
    assert (result.code, result.out) == (1, "")
    assert problem in result.err


def test_standard_input_is_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"12345")))
    with pytest.raises(CommandError, match="over the limit of 4 bytes"):
        messages.read_stdin(4)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"1234")))
    assert messages.read_stdin(4) == b"1234"


def test_a_batch_is_sent_in_one_transaction(
    ok: Ok, document: Callable[..., Any], tmp_path: Path
) -> None:
    ok("create-queue", "q", "--dedup", "1h")
    batch = tmp_path / "batch"
    batch.write_text('{"body":"YQ==","message_id":"1"}\n\n{"body":"Yg==","message_id":"2"}\n')
    assert ok("send", "q", "--batch", str(batch)) == "ok: queue=q seqs=1,2\n"
    assert [message["body"] for message in document("peek", "q")] == ["YQ==", "Yg=="]
    batch.write_text('{"body":"YQ==","message_id":"1"}\n{"body":"Yw==","message_id":"2"}\n')
    assert document("send", "q", "--batch", str(batch)) == {"queue": "q", "seqs": [1, 0]}


def test_a_batch_names_what_was_not_stored(cli: Run, ok: Ok, tmp_path: Path) -> None:
    ok("create-queue", "q", "--dedup", "1h")
    ok("send", "q", "old", "--message-id", "2")
    batch = tmp_path / "batch"
    batch.write_text('{"body":"YQ==","message_id":"1"}\n{"body":"Yw==","message_id":"2"}\n')
    result = cli("send", "q", "--batch", str(batch))
    assert result.out == "ok: queue=q seqs=2,0\n"
    assert result.err.startswith("warning: not stored (seq 0): message 2;")


def test_what_peek_printed_can_be_sent_again(
    ok: Ok, document: Callable[..., Any], tmp_path: Path
) -> None:
    ok("create-queue", "q")
    ok("create-queue", "copy")
    ok("send", "q", "x", "--prop", "a=1")
    batch = tmp_path / "batch"
    batch.write_text("\n".join(map(json.dumps, document("peek", "q"))))
    ok("send", "copy", "--batch", str(batch))
    [message] = document("peek", "copy")
    assert (message["body"], message["properties"]) == ("eA==", {"a": "1"})


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"body":"YQ"}', "line 1 of the batch is not a message"),
        ('{"nonsense":1}', "unknown field `nonsense`"),
        ("[]", "line 1 of the batch is not a message"),
    ],
)
def test_a_batch_line_that_is_no_message(cli: Run, tmp_path: Path, line: str, problem: str) -> None:
    batch = tmp_path / "batch"
    batch.write_text(line)
    result = cli("send", "q", "--batch", str(batch))
    assert result.code == 1
    assert problem in result.err


@pytest.mark.parametrize("extra", [("body",), ("--group", "g"), ("--file", "x")])
def test_a_batch_brings_its_own_fields(cli: Run, extra: tuple[str, ...]) -> None:
    result = cli("send", "q", "--batch", "-", *extra)
    assert result.code == 1
    assert "--batch cannot be combined with" in result.err


@pytest.mark.parametrize(
    "at", ["", "tomorrow", "2001-01-01T00:00:00Z", "-1h", "0", "30", "2100-13-01T00:00:00Z"]
)
def test_a_schedule_time_has_to_be_in_the_future(cli: Run, ok: Ok, at: str) -> None:
    ok("create-queue", "q")
    result = cli("schedule", "q", "x", "--at", at)
    assert (result.code, result.out) == (1, "")
    assert "--at must be " in result.err
    assert ok("peek", "q") == "(empty)\n"


def test_a_schedule_time_is_required(cli: Run) -> None:
    assert "--at is required" in cli("schedule", "q", "x").err


def test_a_schedule_time_is_a_time_or_a_duration_from_now() -> None:
    now = 1_700_000_000_000
    assert read_time("1d12h", "--at", now).timestamp() == now / 1000 + 36 * 3600
    assert read_time("2027-01-02t15:04:05z", "--at", now).isoformat() == (
        "2027-01-02T15:04:05+00:00"
    )


@pytest.mark.parametrize("kind", [[], ["--full"]])
def test_vacuum_of_a_new_database_frees_nothing_and_says_so(
    ok: Ok, document: Callable[..., Any], kind: list[str]
) -> None:
    ok("create-queue", "q")
    assert ok("vacuum", *kind).startswith("ok: full" if kind else "ok: incremental")
    sizes = document("vacuum", *kind)
    assert list(sizes) == ["action", "before_bytes", "after_bytes", "freed_bytes", "grew_bytes"]
    assert sizes["freed_bytes"] >= 0
    assert sizes["grew_bytes"] >= 0
    assert (
        sizes["before_bytes"] - sizes["freed_bytes"] + sizes["grew_bytes"] == (sizes["after_bytes"])
    )


def test_doctor_names_what_is_wrong(cli: Run, ok: Ok, document: Callable[..., Any]) -> None:
    ok("create-queue", "q")
    ok("send", "q", "a", "--group", "g")
    assert ok("doctor") == "ok: no problems found\n"
    assert document("doctor") == {"problems": []}
    path = document("status")["location"]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE mqlite_messages SET head = 0")
    code, out, err = cli("doctor")
    assert (code, out) == (1, "")
    assert err.startswith("error: a line has no head, or more than one: ")


@pytest.mark.parametrize("command", ["vacuum", "doctor"])
def test_vacuum_and_doctor_are_local(
    command: str, cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = (
        f"error: {command} works on the local database file, not through an endpoint: stop the"
        " broker, then give --endpoint= and MQLITE_DB\n"
    )
    assert cli(command, "--endpoint", "http://h") == (1, "", refused)
    monkeypatch.setenv("MQLITE_ENDPOINT", "http://h")
    assert cli(command) == (1, "", refused)
    assert cli(command, "--endpoint=").code == 0


def test_a_database_that_is_open_elsewhere(cli: Run, mq: mqlite.Embedded) -> None:
    result = cli("list")
    assert result.code == 1
    assert result.err.count("\n") == 1
    assert "already open" in result.err

"""Commands on messages that need no lock: send, schedule, cancel, peek."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any, Final

import msgspec

from mqlite.cli import streams
from mqlite.cli.command import (
    DURATION,
    SEQ,
    Body,
    Integer,
    OneOf,
    option,
    positional,
    store_command,
)
from mqlite.cli.connect import Session
from mqlite.cli.output import peeked_line
from mqlite.cli.streams import CommandError
from mqlite.cli.times import read_time, rfc3339
from mqlite.durations import parse_duration
from mqlite.model import MAX_PEEK, MAX_PRIORITY, STATES, MessageData, OutMessage, State

MAX_STDIN_BYTES: Final = 16 * 1024 * 1024
PRIORITY: Final = Integer(-MAX_PRIORITY, MAX_PRIORITY)


class _BatchLine(MessageData, forbid_unknown_fields=True):
    """One line of a batch: the wire's message object, strictly read. What only the broker
    sets is ignored, so that what `peek` or `receive` printed can be sent again."""


def _message_options(body: Body) -> Body:
    for declare in reversed(
        (
            option("--file", metavar="path", help="read the body from a file"),
            option("--message-id", default="", help="dedup and idempotency key"),
            option("--group", default="", help="group id, the ordering key"),
            option("--subject", default="", help="subject, a routing label"),
            option("--reply-to", default="", help="reply-to address"),
            option("--correlation-id", default="", help="correlation id"),
            option("--content-type", default="", help="media type of the body"),
            option("--prop", multiple=True, metavar="k=v,k=v", help="properties; may be repeated"),
            option("--priority", type=PRIORITY, default=0, help="-1000 to 1000, higher first"),
            option("--ttl", type=DURATION, help="time to live, from when it is visible"),
        )
    ):
        body = declare(body)
    return body


@store_command(
    "send",
    help="Send a message to a queue or topic. Several words are joined with spaces; a lone"
    " '-' reads the body from standard input.",
)
@positional("queue", "<queue>")
@positional("words", "<body>...", nargs=-1, required=False)
@_message_options
@option(
    "--batch",
    metavar="path",
    help="send the messages of a file ('-': standard input) in one transaction: JSON"
    " message objects, one a line, the body in base64",
)
def send(
    session: Session, queue: str, words: tuple[str, ...], batch: str | None, **given: Any
) -> None:
    if batch is not None:
        _send_batch(session, queue, words, batch, given)
        return
    message = _message(words, given)
    with session.connect() as mq:
        seq = mq.send(queue, ttl=_ttl(given), **message)
    session.out.done(queue=queue, seq=seq)


def _send_batch(
    session: Session, queue: str, words: tuple[str, ...], batch: str, given: dict[str, Any]
) -> None:
    others = [name for name, value in given.items() if value and name != "ttl"]
    if words or others:
        what = "a body" if words else f"--{others[0].replace('_', '-')}"
        raise CommandError(f"--batch cannot be combined with {what}")
    messages = read_batch(read_stdin() if batch == "-" else Path(batch).read_bytes())
    with session.connect() as mq:
        seqs = mq.send_batch(queue, messages, ttl=_ttl(given))
    session.out.done(queue=queue, seqs=seqs)
    if 0 in seqs:
        lines = ", ".join(str(slot) for slot, seq in enumerate(seqs, 1) if not seq)
        streams.warn(
            f"not stored (seq 0): message {lines}; no subscription takes it, or its message id"
            " was used with another body inside the dedup window"
        )


def read_batch(data: bytes) -> list[OutMessage]:
    """Messages from JSON lines; blank lines are skipped."""
    decoder = msgspec.json.Decoder(_BatchLine)
    messages = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            decoded = decoder.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise CommandError(f"line {number} of the batch is not a message: {error}") from None
        fields = OutMessage.__struct_fields__
        messages.append(OutMessage(**{name: getattr(decoded, name) for name in fields}))
    return messages


@store_command("schedule", help="Send a message for later delivery; see send for the body.")
@positional("queue", "<queue>")
@positional("words", "<body>...", nargs=-1, required=False)
@option("--at", metavar="time", help="RFC 3339 time, or a duration from now (required)")
@_message_options
def schedule(
    session: Session, queue: str, words: tuple[str, ...], at: str | None, **given: Any
) -> None:
    if at is None:
        raise CommandError("--at is required: an RFC 3339 time or a duration such as 30m")
    due = read_time(at, "--at", time.time_ns() // 1_000_000)
    message = _message(words, given)
    with session.connect() as mq:
        seq = mq.send(queue, at=due, ttl=_ttl(given), **message)
    session.out.done(queue=queue, seq=seq, at=rfc3339(due))


@store_command("cancel", help="Delete a scheduled message that was never delivered.")
@positional("queue", "<queue>")
@positional("seq", "<seq>", type=SEQ)
def cancel(session: Session, queue: str, seq: int) -> None:
    with session.connect() as mq:
        mq.cancel(queue, seq)
    session.out.done(action="cancel", queue=queue, seq=seq)


@store_command("peek", help="Browse messages in ascending sequence, without locking them.")
@positional("queue", "<queue>")
@option("--state", type=OneOf(*STATES), help=f"only this state: {', '.join(STATES)}")
@option("--from", "from_seq", type=Integer(0), default=0, metavar="seq", help="first number")
@option("--max", "most", type=Integer(1, MAX_PEEK), default=16, help=f"1 to {MAX_PEEK}")
def peek(session: Session, queue: str, state: State | None, from_seq: int, most: int) -> None:
    with session.connect() as mq:
        messages = mq.peek(queue, from_seq=from_seq, state=state, max_messages=most)
    session.out.rows(messages, peeked_line, none="(empty)")


def _message(words: tuple[str, ...], given: dict[str, Any]) -> dict[str, Any]:
    return {
        "body": read_body(words, given["file"]),
        "message_id": given["message_id"],
        "group_id": given["group"],
        "subject": given["subject"],
        "reply_to": given["reply_to"],
        "correlation_id": given["correlation_id"],
        "content_type": given["content_type"],
        "properties": read_properties(given["prop"]),
        "priority": given["priority"],
    }


def _ttl(given: dict[str, Any]) -> str | None:
    """None for a zero: existing scripts say "no limit of its own" that way."""
    ttl: str | None = given["ttl"]
    return ttl if ttl and parse_duration(ttl) else None


def read_body(words: tuple[str, ...], file: str | None) -> bytes:
    """The body a command line gives: words, a file, or standard input."""
    if file is not None:
        if words:
            raise CommandError("give the body either as words or with --file, not both")
        return Path(file).read_bytes()
    if not words:
        raise CommandError("no body: give it as words, with --file, or '-' for standard input")
    if words == ("-",):
        return read_stdin()
    if words[0] == "-":
        raise CommandError("'-' reads the whole body from standard input; no words may follow it")
    return os.fsencode(" ".join(words))


def read_stdin(limit: int = MAX_STDIN_BYTES) -> bytes:
    """Standard input up to `limit` bytes. Raises CommandError beyond, never cuts."""
    data = sys.stdin.buffer.read(limit + 1)
    if len(data) > limit:
        raise CommandError(f"standard input is over the limit of {limit} bytes; use --file")
    return data


def read_properties(pieces: tuple[str, ...]) -> dict[str, str]:
    """`k=v,k=v` texts: keys are trimmed, values are kept as they are."""
    properties = {}
    for piece in (piece for text in pieces for piece in text.split(",")):
        key, equals, value = piece.partition("=")
        if not equals or not key.strip():
            raise CommandError(f"--prop takes k=v,k=v, got {piece!r}")
        properties[key.strip()] = value
    return properties

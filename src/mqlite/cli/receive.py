"""Commands that take messages: receive, receive-deferred."""

from __future__ import annotations

from collections.abc import Sequence

from mqlite.api import MQ
from mqlite.cli import streams
from mqlite.cli.command import DURATION, Integer, flag, option, positional, store_command
from mqlite.cli.connect import Session
from mqlite.cli.output import Output, received, received_line
from mqlite.cli.safe_ack import Renewer
from mqlite.cli.streams import CommandError
from mqlite.durations import parse_duration
from mqlite.messages import Message
from mqlite.model import MAX_BATCH, MAX_WAIT_MS


@store_command(
    "receive",
    help="Receive messages and complete them once they are printed. A message is only"
    " completed after its output was written; otherwise it stays locked and is delivered"
    " again.",
)
@positional("queue", "<queue>")
@option("--max", "most", type=Integer(1, MAX_BATCH), default=1, help=f"1 to {MAX_BATCH}")
@option("--wait", type=DURATION, default="0", help="wait this long for the first, to 20s")
@flag("--no-ack", help="leave the messages locked and print their lock tokens")
@flag("--delete", help="receive and delete: at most once, no lock")
@option("--attempt-id", default="", help="a retry under the same id gets the same batch")
def receive(
    session: Session,
    queue: str,
    most: int,
    wait: str,
    no_ack: bool | None,
    delete: bool | None,
    attempt_id: str,
) -> None:
    if no_ack and delete:
        raise CommandError("--no-ack and --delete exclude each other")
    if not 0 <= parse_duration(wait) <= MAX_WAIT_MS:
        raise CommandError(f"--wait must be 0 to 20s, got {wait!r}")
    acknowledge = not (no_ack or delete)
    if acknowledge and not streams.deliverable():
        raise CommandError(
            "standard output is closed or the null device, so nobody would see the messages:"
            " nothing was received. Use --delete to drain the queue, or --no-ack for the locks"
        )
    with session.connect() as mq:
        messages = mq.receive(
            queue,
            max_messages=most,
            wait=wait,
            mode="receive_and_delete" if delete else "peek_lock",
            attempt_id=attempt_id,
        )
        if acknowledge and messages:
            _print_and_complete(mq, queue, messages, session.out)
        else:
            _print(messages, session.out, lock_token=bool(no_ack))


@store_command(
    "receive-deferred",
    help="Lock deferred messages by sequence number and print the tokens to settle them with.",
)
@positional("queue", "<queue>")
@option("--seq", "numbers", default="", metavar="n,n", help="sequence numbers (required)")
def receive_deferred(session: Session, queue: str, numbers: str) -> None:
    seqs = read_numbers(numbers)
    with session.connect() as mq:
        _print(mq.receive_deferred(queue, seqs), session.out, lock_token=True)


def read_numbers(text: str) -> list[int]:
    """Positive integers separated by commas; blanks are skipped."""
    pieces = [piece.strip() for piece in text.split(",") if piece.strip()]
    for piece in pieces:
        if not (piece.isascii() and piece.isdigit() and int(piece) > 0):
            raise CommandError(f"--seq takes positive sequence numbers, got {piece!r}")
    if not pieces:
        raise CommandError("--seq is required: the numbers to receive, such as 42,57")
    return [int(piece) for piece in pieces]


def _print_and_complete(mq: MQ, queue: str, messages: list[Message], out: Output) -> None:
    with Renewer(mq, queue, messages):
        _print(messages, out, lock_token=False)
        results = mq.complete_batch(queue, messages)
    lost = [str(result.seq_number) for result in results if not result.ok]
    if lost:
        raise CommandError(
            f"the lease was lost before completion, delivered again: seq {', '.join(lost)}"
        )


def _print(messages: Sequence[Message], out: Output, *, lock_token: bool) -> None:
    """Print what was received, up to the operating system."""
    views = (received(message, lock_token=lock_token) for message in messages)
    out.rows(views, received_line, none="(no messages)")
    streams.flush()

"""Commands that settle or renew a message locked earlier; a broker holds the lock between."""

from __future__ import annotations

from mqlite.cli.command import DURATION, SEQ, Body, flag, option, positional, store_command
from mqlite.cli.connect import Session


def _lease(body: Body) -> Body:
    """The positionals that name a locked message."""
    for declare in (
        positional("lock_token", "<lock-token>"),
        positional("seq", "<seq>", type=SEQ),
        positional("queue", "<queue>"),
    ):
        body = declare(body)
    return body


@store_command("complete", help="Done: remove a locked message.")
@_lease
def complete(session: Session, queue: str, seq: int, lock_token: str) -> None:
    with session.connect() as mq:
        mq.complete(queue, seq, lock_token)
    session.out.done(action="complete", queue=queue, seq=seq)


@store_command(
    "abandon",
    help="Give a locked message back for another delivery. Without a delay the queue's retry"
    " policy decides when.",
)
@_lease
@option("--delay", type=DURATION, default="0", help="not before this long")
@flag("--snooze", help="count no failure")
def abandon(
    session: Session, queue: str, seq: int, lock_token: str, delay: str, snooze: bool | None
) -> None:
    with session.connect() as mq:
        mq.abandon(queue, seq, lock_token, delay=delay, snooze=bool(snooze))
    session.out.done(action="abandon", queue=queue, seq=seq)


@store_command(
    "release", help="Give a locked message back at once, as if it had not been delivered."
)
@_lease
def release(session: Session, queue: str, seq: int, lock_token: str) -> None:
    with session.connect() as mq:
        mq.release(queue, seq, lock_token)
    session.out.done(action="release", queue=queue, seq=seq)


@store_command("reject", help="Dead-letter a locked message.")
@_lease
@option("--reason", default="", help="short reason (default AppRequested)")
@option("--detail", default="", help="longer description")
def reject(
    session: Session, queue: str, seq: int, lock_token: str, reason: str, detail: str
) -> None:
    with session.connect() as mq:
        mq.reject(queue, seq, lock_token, reason=reason, description=detail)
    session.out.done(action="reject", queue=queue, seq=seq)


@store_command("defer", help="Set a locked message aside; receive-deferred gets it back.")
@_lease
def defer(session: Session, queue: str, seq: int, lock_token: str) -> None:
    with session.connect() as mq:
        mq.defer(queue, seq, lock_token)
    session.out.done(action="defer", queue=queue, seq=seq)


@store_command("renew", help="Extend the lease of a locked message by the lock duration.")
@_lease
def renew(session: Session, queue: str, seq: int, lock_token: str) -> None:
    with session.connect() as mq:
        mq.renew(queue, seq, lock_token)
    session.out.done(action="renew", queue=queue, seq=seq)

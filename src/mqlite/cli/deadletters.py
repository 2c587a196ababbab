"""Commands that empty a dead-letter queue, in chunks, so that a long run shows progress and
can be interrupted between two of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mqlite.api import MQ
from mqlite.cli.command import DURATION, Integer, flag, option, positional, store_command
from mqlite.cli.connect import Session
from mqlite.cli.output import Progress
from mqlite.cli.streams import CommandError
from mqlite.durations import parse_duration
from mqlite.model import MoveResult

CHUNK: Final = 1000


@store_command("redrive", help="Make dead letters active again, oldest first.")
@positional("queue", "<queue>")
@option("--to", "target", default="", metavar="queue", help="move them there instead")
@option("--max", "most", type=Integer(0), default=0, help="at most this many (0: all)")
@option("--older-than", type=DURATION, default="0", help="only older messages (0: any age)")
def redrive(session: Session, queue: str, target: str, most: int, older_than: str) -> None:
    _check_age(older_than)
    with session.connect() as mq:

        def move(count: int) -> MoveResult:
            return mq.redrive(queue, target=target, max_messages=count, older_than=older_than)

        moved = in_chunks("redriving", move, limit=_limit(mq, queue, most))
    session.out.done(action="redrive", moved=moved)


@store_command(
    "purge-dlq",
    help="Delete dead letters, oldest first. Needs a bound, or --all to delete every one.",
)
@positional("queue", "<queue>")
@option("--max", "most", type=Integer(0), help="at most this many")
@option("--older-than", type=DURATION, help="only older messages, 1ms or more")
@flag("--all", "everything", help="delete the whole dead-letter queue")
def purge_dlq(
    session: Session, queue: str, most: int | None, older_than: str | None, everything: bool | None
) -> None:
    if everything and (most is not None or older_than is not None):
        raise CommandError("--all deletes everything; it cannot be combined with a bound")
    age = older_than or "0"
    _check_age(age)
    if not everything and not most and parse_duration(age) == 0:
        raise CommandError("give a bound (--max, --older-than), or --all to delete every one")
    with session.connect() as mq:

        def delete(count: int) -> MoveResult:
            return mq.purge(queue, max_messages=count, older_than=age)

        purged = in_chunks("purging", delete, limit=_limit(mq, queue, most or 0))
    session.out.done(action="purge-dlq", purged=purged)


def in_chunks(verb: str, move: Callable[[int], MoveResult], *, limit: int) -> int:
    """Call `move` until `limit` messages are done or none are left; answers how many.

    The limit is what makes this end: a message may be dead-lettered again meanwhile.
    """
    done = 0
    with Progress() as progress:
        while done < limit:
            asked = min(CHUNK, limit - done)
            result = move(asked)
            done += result.count
            progress.show(f"{verb} {done:,} of {limit:,}")
            if result.count == 0 or (result.complete and result.count < asked):
                break
    return done


def _limit(mq: MQ, queue: str, most: int) -> int:
    dead = mq.stats(queue).dead_lettered
    return min(most, dead) if most else dead


def _check_age(age: str) -> None:
    exact = parse_duration(age)
    if exact < 0 or 0 < exact < 1:
        raise CommandError(f"--older-than must be 0 or at least 1ms, got {age!r}")

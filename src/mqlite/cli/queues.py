"""Commands on queues and their settings."""

from __future__ import annotations

from typing import Any, get_args

import click

from mqlite.cli.command import (
    DURATION,
    DurationText,
    Integer,
    OneOf,
    flag,
    option,
    positional,
    store_command,
)
from mqlite.cli.connect import Session
from mqlite.cli.output import shown
from mqlite.durations import parse_duration
from mqlite.model import ORDERING_MODES, ClaimOrder, Kind, MaxCounts
from mqlite.wire import QueueEntry

_UNBOUNDED = "-1"


class _DeadLetterAge(DurationText):
    """A duration, or -1 for no bound."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return value if value == _UNBOUNDED else super().convert(value, param, ctx)


@store_command(
    "create-queue",
    help="Create a queue, or change the settings of one. A setting that is left out returns to"
    " its default; those from --retry-initial-delay on keep their value.",
)
@positional("name", "<name>")
@option("--kind", type=OneOf(*get_args(Kind)), help="queue or subscription")
@option("--lock", "lock_duration", type=DURATION, help="lease of a delivery (0: 30s)")
@option(
    "--max-delivery",
    "max_delivery_count",
    type=Integer(0),
    help="deliveries before a message is dead-lettered (0: 10)",
)
@option("--ttl", "default_ttl", type=DURATION, help="default time to live (0: unlimited)")
@flag("--dead-letter-on-expire", help="dead-letter what expires (default true)")
@option("--dedup", "dedup_window", type=DURATION, help="dedup window (0: off)")
@option("--ordering", "ordering_mode", type=OneOf(*ORDERING_MODES), help=", ".join(ORDERING_MODES))
@option(
    "--dlq-max-age",
    type=_DeadLetterAge(),
    help="keep dead letters this long (0: the broker's bound, -1: no bound)",
)
@option("--dlq-max-count", type=Integer(-1), help="keep this many dead letters (0, -1: as above)")
@option(
    "--dlq-max-bytes", type=Integer(-1), help="keep dead letters up to this size (0, -1: as above)"
)
@option("--retry-initial-delay", type=DURATION, help="delay before the first retry")
@option("--retry-max-delay", type=DURATION, help="upper bound of the retry delay")
@option("--retry-multiplier", type=float, help="growth of the retry delay")
@option("--retry-jitter", type=float, help="share of the retry delay that varies")
@option(
    "--max-counts",
    type=OneOf(*get_args(MaxCounts)),
    help="what --max-delivery counts: deliveries or failures",
)
@option("--retain-completed", type=DURATION, help="keep finished messages this long")
@flag("--keep-leases", help="leases survive a restart of the broker")
@option("--claim-order", type=OneOf(*get_args(ClaimOrder)), help="sequence or due_time")
def create_queue(session: Session, name: str, kind: Kind | None, **given: Any) -> None:
    settings = {setting: value for setting, value in given.items() if value is not None}
    for setting in ("dlq_max_age", "dlq_max_count", "dlq_max_bytes"):
        if str(settings.get(setting)) == _UNBOUNDED:
            settings[setting] = None
    if parse_duration(settings.get("lock_duration", "1s")) == 0:
        del settings["lock_duration"]
    if settings.get("max_delivery_count") == 0:
        del settings["max_delivery_count"]
    with session.connect() as mq:
        mq.create_queue(name, kind=kind or "queue", **settings)
    session.out.done(action="create-queue", queue=name)


@store_command("delete-queue", help="Delete a queue that holds no messages in any state.")
@positional("name", "<name>")
@option("--generation", help="delete only this incarnation, as 'list --output json' shows it")
def delete_queue(session: Session, name: str, generation: str | None) -> None:
    with session.connect() as mq:
        mq.delete_queue(name, generation=generation)
    session.out.done(action="delete-queue", queue=name)


@store_command("pause", help="Stop deliveries from a queue; it still accepts messages.")
@positional("queue", "<queue>")
def pause(session: Session, queue: str) -> None:
    with session.connect() as mq:
        mq.pause_queue(queue)
    session.out.done(action="pause", queue=queue)


@store_command("resume", help="Deliver from a paused queue again.")
@positional("queue", "<queue>")
def resume(session: Session, queue: str) -> None:
    with session.connect() as mq:
        mq.resume_queue(queue)
    session.out.done(action="resume", queue=queue)


@store_command("list", help="List queues and the queues behind subscriptions.")
def list_queues(session: Session) -> None:
    with session.connect() as mq:
        queues = mq.list_queues()
    session.out.rows(map(QueueEntry.of, queues), _line, none="(no queues)")


@store_command("metrics", help="Count the messages of a queue by state.")
@positional("queue", "<queue>")
def metrics(session: Session, queue: str) -> None:
    with session.connect() as mq:
        stats = mq.stats(queue)
    if session.out.json:
        session.out.document(stats)
        return
    session.out.line(
        f"queue={shown(stats.queue)} active={stats.active} locked={stats.locked}"
        f" deferred={stats.deferred} scheduled={stats.scheduled} dead={stats.dead_lettered}"
        f" total={stats.total} oldest={stats.oldest_message_age_ms}ms"
    )


def _line(queue: QueueEntry) -> str:
    return (
        f"{shown(queue.name):<24} kind={queue.kind:<12} lock={queue.lock_duration_ms}ms"
        f" maxdc={queue.max_delivery_count} ttl={queue.default_ttl_ms}ms"
        f" dedup={queue.dedup_window_ms}ms{' paused' if queue.paused else ''}"
    )

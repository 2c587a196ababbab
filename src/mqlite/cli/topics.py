"""Commands on subscriptions."""

from __future__ import annotations

from mqlite.cli.command import option, positional, store_command
from mqlite.cli.connect import Session
from mqlite.cli.output import quoted, shown
from mqlite.wire import SubscriptionEntry


@store_command(
    "subscribe",
    help="Create a subscription of a topic, with a queue of the same name to receive from;"
    " or replace the filter of one that exists.",
)
@positional("topic", "<topic>")
@positional("name", "<name>")
@option("--expr", default="", help="filter expression; empty matches every message")
def subscribe(session: Session, topic: str, name: str, expr: str) -> None:
    with session.connect() as mq:
        mq.subscribe(topic, name, expr=expr if expr.strip() else "")
    session.out.done(action="subscribe", subscription=name, topic=topic)


@store_command("unsubscribe", help="Delete a subscription and its queue, which must be empty.")
@positional("topic", "<topic>")
@positional("name", "<name>")
def unsubscribe(session: Session, topic: str, name: str) -> None:
    with session.connect() as mq:
        mq.unsubscribe(topic, name)
    session.out.done(action="unsubscribe", subscription=name, topic=topic)


@store_command("list-subscriptions", help="List subscriptions with topic and filter.")
def list_subscriptions(session: Session) -> None:
    with session.connect() as mq:
        found = mq.list_subscriptions()
    entries = (SubscriptionEntry(one.topic, one.name, one.expr) for one in found)
    session.out.rows(entries, _line, none="(no subscriptions)")


def _line(one: SubscriptionEntry) -> str:
    expr = (one.expr if one.expr.isprintable() else quoted(one.expr.encode())) or "(match all)"
    return f"{shown(one.name):<20} topic={shown(one.topic):<20} filter={expr}"

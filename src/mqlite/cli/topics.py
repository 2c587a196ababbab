"""Commands on subscriptions."""

from __future__ import annotations

from typing import Any

from mqlite.cli.command import DURATION, option, positional, store_command
from mqlite.cli.connect import Session
from mqlite.cli.messages import read_body, read_properties
from mqlite.cli.output import quoted, shown
from mqlite.cli.streams import CommandError
from mqlite.clock import SystemClock
from mqlite.errors import InvalidArgument
from mqlite.model import MAX_MESSAGE_BYTES, FilterTest, OutMessage, SubscriptionInfo


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
        try:
            mq.subscribe(topic, name, expr=expr if expr.strip() else "")
        except InvalidArgument as error:
            raise _refusal(str(error)) from None
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
    session.out.rows(found, _line, none="(no subscriptions)")


def _line(one: SubscriptionInfo) -> str:
    expr = (one.expr if one.expr.isprintable() else quoted(one.expr.encode())) or "(match all)"
    return f"{shown(one.name):<20} topic={shown(one.topic):<20} filter={expr}"


@store_command(
    "test-filter",
    help="Try a filter: whether it can be used and, with a body or a flag that describes a"
    " message, whether it would let that message through. Nothing is stored.",
)
@positional("expr", "<expr>")
@positional("body", "[body]", required=False)
@option("--subject", help="subject of the sample")
@option("--group", help="group id")
@option("--prop", multiple=True, metavar="k=v,k=v", help="properties; may be repeated")
@option("--file", metavar="path", help="read the body from a file")
@option("--content-type", help="media type of the body")
@option("--message-id", help="message id")
@option("--correlation-id", help="correlation id")
@option("--reply-to", help="reply-to address")
@option("--delay", type=DURATION, help="the sample is scheduled for so much later")
def test_filter(session: Session, expr: str, **given: Any) -> None:
    result = _tried(session, expr, _sample(given), given["delay"])
    if session.out.json:
        session.out.document(result)
    if result.error:
        raise _refusal(result.error)
    if not session.out.json:
        session.out.ok(_verdict(result))


def _tried(session: Session, expr: str, sample: OutMessage | None, delay: str | None) -> FilterTest:
    """What the broker makes of it, or this process: that needs no database."""
    if session.target.endpoint:
        with session.connect() as mq:
            return mq.test_filter(expr, sample, visible_at=delay)
    from mqlite.embedded.calls import Calls

    return Calls(SystemClock(), MAX_MESSAGE_BYTES).test_filter(expr, sample, None, delay)()


def _refusal(reason: str) -> CommandError:
    """The error for a filter, with the lines that show the place."""
    sentence, _, excerpt = reason.partition("\n")
    return CommandError(sentence, excerpt)


def _sample(given: dict[str, Any]) -> OutMessage | None:
    """The message that the command line describes; None if it says nothing of one."""
    if all(value in (None, ()) for value in given.values()):
        return None
    words = () if given["body"] is None else (given["body"],)
    has_body = bool(words) or given["file"] is not None
    return OutMessage(
        body=read_body(words, given["file"]) if has_body else b"",
        subject=given["subject"] or "",
        group_id=given["group"] or "",
        properties=read_properties(given["prop"]),
        content_type=given["content_type"] or "",
        message_id=given["message_id"] or "",
        correlation_id=given["correlation_id"] or "",
        reply_to=given["reply_to"] or "",
    )


def _verdict(result: FilterTest) -> str:
    if not result.ran:
        return "valid, no sample"
    return "valid, matched" if result.matched else "valid, not matched"

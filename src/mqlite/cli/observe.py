"""`mqlite observe`: everything a queue tells about itself, for programs and for people."""

from __future__ import annotations

from mqlite.cli.command import store_command
from mqlite.cli.connect import Session


@store_command(
    "observe",
    help="Print what the queue holds and what was done in it, as JSON. Look at collection.state"
    " before the queues: one that is unavailable has none, which is not zero messages.",
)
def observe(session: Session) -> None:
    with session.connect() as mq:
        found = mq.observe()
    session.out.document(found)

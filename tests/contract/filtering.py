"""What the tests of filters share."""

from __future__ import annotations

import logging

from mqlite.api import MQ

GOLD = 'properties["tier"] == "gold"'
FAILS = "subject_parts[3] == 'x'"
"""Fails for a subject of fewer than four parts."""
HOSTILE = "all(1..9000, # > 0)"
"""Costs 9,000 units of work."""
REFUSED = {
    'subjct == "a"': 'unknown name subjct (1:1)\n | subjct == "a"\n | ^\ndid you mean "subject"?',
    "subject ==": "unexpected token EOF (1:10)\n | subject ==\n | .........^",
    "body_size + 1": "expected bool, but got int",
    "a" * 4097: "expression too long (4097 > 4096 bytes)",
}
"""Filters that do not compile, and what is said of them."""


class Records(logging.Handler):
    """Keeps what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def queue_id(mq: MQ, name: str) -> int:
    [found] = [info for info in mq.list_queues() if info.name == name]
    return int(found.generation)


def told(record: logging.LogRecord) -> tuple[str, str, str]:
    """The fields of a log line on a failed filter."""
    fields = record.__dict__
    return fields["subscription"], fields["expr"], fields["error"]

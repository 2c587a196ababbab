"""A process that sends through `mqlite.outbox`: `sender.py LIBRARY PATH FIRST TRANSACTIONS`.

In each transaction an order is written and a message sent. Every third is rolled back, with
a number of its own below zero; every fifth has a savepoint that is rolled back. Prints the
numbers it was told were committed.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from time import sleep

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import mqlite
from joins.helpers import Undo
from joins.modes import MODES, Caller


def order(caller: Caller, number: int) -> None:
    caller.order(number)
    mqlite.outbox(caller.handle).send("orders", str(number), group_id=str(number % 7))


def send(caller: Caller, number: int) -> None:
    with suppress(Undo), caller.transaction():
        if number % 3 == 0:
            order(caller, -number)
            raise Undo
        order(caller, number)
        if number % 5 == 0:
            with suppress(Undo), caller.nested():
                order(caller, -number)
                raise Undo
    print(number if number % 3 else "", flush=True)


def main(library: str, path: str, first: str, transactions: str) -> None:
    [mode] = [mode for mode in MODES if mode.name == library]
    with ExitStack() as resources:
        # Many writers can starve each other in SQLite; that is no matter of the queue's.
        caller = mode.connect(Path(path), resources, timeout=60.0)
        for number in range(int(first), int(first) + int(transactions)):
            send(caller, number)
            sleep(0.005)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What the lookup of an access key costs a request: processor time, in turns.

python -m bench.access_keys
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable

import mqlite
from bench.harness import Result, print_table, queue_on_disk
from mqlite.broker.managed import ManagedKeys
from mqlite.engine import keys

TASKS = 64
LOOKUPS = 64 * 200
ROUNDS = 7

LookUp = Callable[[bytes], Awaitable[object]]


async def microseconds_each(look_up: LookUp, digest: bytes, tasks: int) -> float:
    async def work() -> None:
        for _ in range(LOOKUPS // tasks):
            await look_up(digest)

    started = time.process_time()
    await asyncio.gather(*(work() for _ in range(tasks)))
    return (time.process_time() - started) / LOOKUPS * 1e6


async def compare(mq: mqlite.Embedded) -> list[Result]:
    created = mq.create_key(mqlite.generate_key_id(), name="bench", permissions=["send"])
    digest = keys.digest_of(created.token.encode())
    managed = ManagedKeys(mq.core)

    async def alone(digest: bytes) -> object:
        return await mq.core.store.seek_async(keys.look_up([digest]))

    took: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, look_up, tasks in (
            (f"lookup, {TASKS} requests at once", managed.rights, TASKS),
            (f"each by itself, {TASKS} requests at once", alone, TASKS),
            ("lookup, one request at a time", managed.rights, 1),
        ):
            took.setdefault(name, []).append(await microseconds_each(look_up, digest, tasks))
    return [
        Result(name, f"{statistics.median(each):.0f} microseconds", "reported", True)
        for name, each in took.items()
    ]


def measure() -> list[Result]:
    with queue_on_disk() as (mq, _):
        return asyncio.run(compare(mq))


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    print_table(measure())

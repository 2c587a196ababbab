"""What filters cost where messages are published: `python -m bench.filters`.

In the program, the cost of each filter that does not let a message through. Over HTTP, publishing
to a topic with 100 filtered subscriptions, of which one accepts, against a send to a plain queue:
whole operation against whole operation, in turns, by many connections, as requests per second
and as the broker's processor time per request.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import time
from urllib.parse import urlsplit

import msgspec
import psutil

from bench.broker_process import broker
from bench.harness import Result, print_table, queue_on_disk, seconds_each
from mqlite import OutMessage
from mqlite.api import MQ
from mqlite.client import Client

SUBSCRIPTIONS = 100
CONNECTIONS = 64
SUBJECT = "orders.eu.new"
PROPERTIES = {"tier": "tier7", "region": "eu"}
BODY = b"x" * 200


def filter_of(number: int) -> str:
    """Accepts the message if its tier has this number."""
    return f'subject_parts[0] == "orders" && properties["tier"] == "tier{number}"'


def subscribe(mq: MQ, topic: str, numbers: range) -> None:
    for number in numbers:
        mq.subscribe(topic, f"{topic}-{number}", expr=filter_of(number))


def in_program(rounds: int = 60, times: int = 50) -> Result:
    """Publishing to 1 and to 100 filtered subscriptions, of which one accepts. The best of many
    short runs: a difference of medians would be that of what else the machine did."""
    with queue_on_disk() as (mq, _):
        subscribe(mq, "few", range(7, 8))
        subscribe(mq, "many", range(SUBSCRIPTIONS))
        message = [OutMessage(body=BODY, subject=SUBJECT, properties=PROPERTIES)]
        took: dict[str, list[float]] = {"few": [], "many": []}

        def publish(topic: str, number: int) -> None:
            for _ in range(number):
                mq.send_batch(topic, message)

        for _ in range(rounds):
            for topic, found in took.items():
                found.append(seconds_each(lambda n, topic=topic: publish(topic, n), times))
    few, many = (min(found) * 1e6 for found in took.values())
    each = (many - few) / (SUBSCRIPTIONS - 1)
    value = f"{each:.2f} µs ({few:.0f} µs with 1 subscription, {many:.0f} µs with {SUBSCRIPTIONS})"
    return Result("a filter that rejects, in the program", value, "reported", True)


async def _requests(url: str, request: bytes, until: float) -> int:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    done = 0
    while time.perf_counter() < until:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None
        answer = await reader.readexactly(int(length[1]))
        assert head.startswith(b"HTTP/1.1 200"), answer
        done += 1
    writer.close()
    return done


def load(url: str, target: str, seconds: float) -> int:
    """How many messages could be sent to `target`, one a request."""
    message = {"body": BODY, "subject": SUBJECT, "properties": PROPERTIES}
    body = msgspec.json.encode({"queue": target, "messages": [message]})
    head = "POST /mqlite.v1.QueueService/Send HTTP/1.1\r\nHost: bench\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    async def run() -> int:
        until = time.perf_counter() + seconds
        return sum(
            await asyncio.gather(*(_requests(url, request, until) for _ in range(CONNECTIONS)))
        )

    return asyncio.run(run())


def over_http(rounds: int, seconds: float) -> list[Result]:
    rates: dict[str, list[float]] = {"plain": [], "topic": []}
    costs: dict[str, list[float]] = {"plain": [], "topic": []}
    with broker() as (url, process), Client(url) as client:
        client.create_queue("plain")
        subscribe(client, "topic", range(SUBSCRIPTIONS))
        for target in rates:
            load(url, target, 0.5)
        for _ in range(rounds):
            for target in rates:
                before = _cpu(process)
                done = load(url, target, seconds)
                rates[target].append(done / seconds)
                costs[target].append((_cpu(process) - before) / done * 1e6)
    plain, topic = (statistics.median(found) for found in rates.values())
    ratio = plain / topic
    plain_cost, topic_cost = (statistics.median(found) for found in costs.values())
    cost_ratio = topic_cost / plain_cost
    name = f"publishing to {SUBSCRIPTIONS} filtered subscriptions over HTTP"
    return [
        Result(
            f"{name}, times a plain send",
            f"{ratio:.2f} ({plain:,.0f}/s plain, {topic:,.0f}/s)",
            "under 3",
            ratio < 3,
        ),
        Result(
            f"{name}, processor time of the broker",
            f"{cost_ratio:.2f} ({plain_cost:.0f} µs plain, {topic_cost:.0f} µs)",
            "under 3",
            cost_ratio < 3,
        ),
    ]


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def measure(rounds: int = 7, seconds: float = 1.5) -> list[Result]:
    return [in_program(), *over_http(rounds, seconds)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.5, help="of each HTTP round")
    options = parser.parse_args()
    print_table(measure(options.rounds, options.seconds))

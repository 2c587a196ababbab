"""Single-message Send over HTTP against a bare application on the same kind of server.

    python bench/http_send.py [--rounds 5] [--seconds 3] [--connections 64] [--db PATH]

Both run on uvicorn, in processes of their own, and are loaded in turns, by wrk where it is installed,
else by a small generator here. The broker authenticates, logs every request and commits
each message to a file (WAL, NORMAL); the bare application decodes the same request and
answers. Prints the medians, the ratio and the 99th percentile. Read the ratio, not the
rates: they belong to the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

import mqlite
from mqlite import wire
from mqlite.broker.requestlog import LineFormatter

TOKEN = "mqk_" + "0" * 64
PATH = "/mqlite.v1.QueueService/Send"
BODY = msgspec.json.encode(
    {"queue": "bench", "messages": [{"body": b"x" * 200, "content_type": "text/plain"}]}
)
WRK_SCRIPT = """
wrk.method = "POST"
wrk.headers["Authorization"] = "Bearer {token}"
wrk.headers["Content-Type"] = "application/json"
wrk.body = [[{body}]]
"""


class Load(NamedTuple):
    """Requests per second, the 99th percentile in milliseconds, and how many failed."""

    rate: float
    p99: float
    failed: int


def run_broker(database: str) -> None:
    from mqlite.broker.serve import serve

    handler = logging.FileHandler(Path(database).with_name("requests.log"))
    handler.setFormatter(LineFormatter())
    logging.getLogger("mqlite").addHandler(handler)
    logging.getLogger("mqlite").setLevel(logging.INFO)
    with mqlite.open(database) as mq:
        mq.create_queue("bench")
        serve(mq, "127.0.0.1:0", tokens=[TOKEN], ready=lambda url: print(url, flush=True))


def run_bare() -> None:
    import uvicorn

    from mqlite.broker.server import bind, url_of

    decoder = msgspec.json.Decoder(wire.SendRequest)
    encoder = msgspec.json.Encoder()
    answer = wire.SendResponse([1])

    async def app(scope: Any, receive: Any, send: Any) -> None:
        decoder.decode((await receive())["body"])
        body = encoder.encode(answer)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    with bind("127.0.0.1:0") as listener:
        print(url_of(listener), flush=True)
        config = uvicorn.Config(
            app, http="httptools", ws="none", lifespan="off", log_config=None, proxy_headers=False
        )
        uvicorn.Server(config).run(sockets=[listener])


@contextmanager
def process(*arguments: str) -> Iterator[str]:
    """A server in a process of its own; yields its URL."""
    command = [sys.executable, __file__, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()


def with_wrk(url: str, seconds: float, connections: int) -> Load:
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(WRK_SCRIPT.format(token=TOKEN, body=BODY.decode()))
        script.flush()
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "--latency"]
        command += ["-s", script.name, url + PATH]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate = re.search(r"Requests/sec:\s+([\d.]+)", text)
    p99 = re.search(r"99%\s+([\d.]+)(us|ms|s)", text)
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    assert rate is not None
    assert p99 is not None
    scale = {"us": 0.001, "ms": 1.0, "s": 1000.0}[p99[2]]
    return Load(float(rate[1]), float(p99[1]) * scale, int(failed[1]) if failed else 0)


async def _one_connection(url: str, until: float, took: list[float]) -> int:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    head = f"POST {PATH} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {TOKEN}\r\n"
    request = f"{head}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY
    failed = 0
    while (began := time.perf_counter()) < until:
        writer.write(request)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", answer)
        assert length is not None
        await reader.readexactly(int(length[1]))
        failed += not answer.startswith(b"HTTP/1.1 200")
        took.append(time.perf_counter() - began)
    writer.close()
    return failed


def with_asyncio(url: str, seconds: float, connections: int) -> Load:
    async def run() -> Load:
        took: list[float] = []
        until = time.perf_counter() + seconds
        clients = (_one_connection(url, until, took) for _ in range(connections))
        failed = sum(await asyncio.gather(*clients))
        p99 = statistics.quantiles(took, n=100)[98]
        return Load(len(took) / seconds, p99 * 1000, failed)

    return asyncio.run(run())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--serve", choices=["broker", "bare"], help=argparse.SUPPRESS)
    parser.add_argument("--db", help="database file; a temporary one by default")
    arguments = parser.parse_args()
    if arguments.serve == "broker":
        run_broker(arguments.db)
    elif arguments.serve == "bare":
        run_bare()
    else:
        compare(arguments)


def compare(arguments: argparse.Namespace) -> None:
    load = with_wrk if shutil.which("wrk") else with_asyncio
    loads: dict[str, list[Load]] = {"bare": [], "broker": []}
    with ExitStack() as stack:
        where = stack.enter_context(tempfile.TemporaryDirectory())
        database = arguments.db or str(Path(where) / "mq.db")
        urls = {
            "bare": stack.enter_context(process("--serve", "bare")),
            "broker": stack.enter_context(process("--serve", "broker", "--db", database)),
        }
        for _ in range(arguments.rounds):
            for name, url in urls.items():
                loads[name].append(load(url, arguments.seconds, arguments.connections))
    report(loads, load.__name__, arguments.connections)


def report(loads: dict[str, list[Load]], by: str, connections: int) -> None:
    rates = {name: statistics.median(one.rate for one in found) for name, found in loads.items()}
    print(f"{connections} connections, {by.removeprefix('with_')}, medians")
    for name, found in loads.items():
        p99 = statistics.median(one.p99 for one in found)
        failed = sum(one.failed for one in found)
        print(f"{name:<7} {rates[name]:>9,.0f} requests/s   p99 {p99:.1f} ms   {failed} failed")
    print(f"ratio   {rates['broker'] / rates['bare']:>9.2f}")


if __name__ == "__main__":
    main()

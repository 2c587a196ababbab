"""The request log: what it says, at which level, and what it never says."""

from __future__ import annotations

import asyncio
import logging
import queue
import socket
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import pytest

from broker.keying import MONITOR, create
from broker.support import TOKEN, Api
from mqlite.broker.requestlog import (
    LOGGER,
    LineFormatter,
    RequestLog,
    RequestRecord,
    duration_text,
)
from mqlite.broker.serve import asgi, serving
from mqlite.clock import ManualClock
from mqlite.embedded import Embedded
from mqlite.keys import generate_token
from patience import PATIENCE_S


class Collector(logging.Handler):
    """The records as they come, one by one."""

    def __init__(self) -> None:
        super().__init__()
        self._records: queue.Queue[RequestRecord] = queue.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        for one in record.requests:  # type: ignore[attr-defined]
            assert one.level == record.levelno
            self._records.put(one)

    def next(self) -> RequestRecord:
        return self._records.get(timeout=PATIENCE_S)


@contextmanager
def collecting(url: str) -> Iterator[Collector]:
    """Collects from here on: what earlier requests left is let pass first."""
    handler = Collector()
    level = LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.DEBUG)
    try:
        Api(url).request("GET", "/mark")
        while handler.next().path != "/mark":
            pass
        yield handler
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)


@pytest.fixture
def collector(shared_url: str) -> Iterator[Collector]:
    with collecting(shared_url) as collector:
        yield collector


def text_of(record: RequestRecord) -> str:
    """Without the duration, which no test can know."""
    text, _, duration = str(record).rpartition(" dur=")
    assert duration
    return text


@contextmanager
def handled_by(handler: logging.Handler) -> Iterator[None]:
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(logging.NOTSET)


def test_the_log_goes_on_after_a_thread_that_could_not_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    collector = Collector()
    with handled_by(collector):
        log = RequestLog()
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", fail)
            log.add("/one", 200, (), 0.0, quiet=False)
        log.add("/two", 200, (), 0.0, quiet=False)
        assert [collector.next().path, collector.next().path] == ["/one", "/two"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_log_goes_on_after_a_handler_that_raised() -> None:
    class Failing(Collector):
        def __init__(self) -> None:
            super().__init__()
            self.failed: queue.Queue[threading.Thread] = queue.Queue()

        def emit(self, record: logging.LogRecord) -> None:
            if vars(record)["requests"][0].path == "/one":
                self.failed.put(threading.current_thread())
                raise OSError("no")
            super().emit(record)

    failing = Failing()
    with handled_by(failing):
        log = RequestLog()
        log.add("/one", 200, (), 0.0, quiet=False)
        writer = failing.failed.get(timeout=PATIENCE_S)
        writer.join(PATIENCE_S)
        log.add("/two", 200, (), 0.0, quiet=False)
        assert failing.next().path == "/two"


def test_what_every_operation_tells(collector: Collector, shared_url: str) -> None:
    api = Api(shared_url)
    told = [
        ("CreateQueue", {"name": "lq"}, "status=200 queue=lq"),
        ("Send", {"queue": "lq", "messages": [{"message_id": "m 1"}]}, 'queue=lq n=1 msg_id="m 1"'),
        ("Send", {"queue": "lq", "messages": [{"message_id": "m"}, {}]}, "queue=lq n=2"),
        ("Receive", {"queue": "lq"}, "queue=lq msgs=1"),
        ("ReceiveDeferred", {"queue": "lq", "seq_numbers": []}, "queue=lq msgs=0"),
        ("Peek", {"queue": "lq"}, "queue=lq msgs=3"),
        ("CompleteBatch", {"queue": "lq", "messages": [{}, {}]}, "queue=lq n=2"),
        ("RenewBatch", {"queue": "lq", "messages": [{}]}, "queue=lq n=1"),
        ("Stats", {"queue": "lq"}, "queue=lq"),
        ("Subscribe", {"topic": "lt", "name": "ls"}, "topic=lt sub=ls"),
        ("Redrive", {"queue": "lq"}, "queue=lq n=0"),
        ("Purge", {"queue": "lq"}, "queue=lq n=0"),
        ("ListQueues", {}, "status=200"),
        ("Status", {}, "status=200"),
    ]
    for operation, fields, _ in told:
        assert api.post(operation, fields).status == 200
    for operation, _, said in told:
        record = collector.next()
        assert record.level == logging.INFO
        text = text_of(record)
        assert f"/{operation} " in text + " "
        assert text.split("Service/")[0] in ("Queue", "Admin")
        assert text.endswith(said)


def test_levels(collector: Collector, shared_api: Api) -> None:
    asked = [
        (("GET", "/"), logging.INFO, "/ status=200"),
        (("GET", "/healthz"), logging.INFO, "/healthz status=200"),
        (("GET", "/a%20b%0Ac"), logging.WARNING, '"/a b\\nc" status=404 code=not_found'),
    ]
    collector.next()
    for request, level, said in asked:
        shared_api.request(*request)
        record = collector.next()
        assert (record.level, text_of(record)) == (level, said)


def test_only_an_empty_receive_is_quiet(collector: Collector, shared_url: str) -> None:
    api = Api(shared_url)
    api.ok("CreateQueue", name="quiet")
    collector.next()
    for operation, level in (
        ("Receive", logging.DEBUG),
        ("ReceiveDeferred", logging.INFO),
        ("Peek", logging.INFO),
    ):
        api.ok(operation, queue="quiet")
        record = collector.next()
        assert record.level == level
        assert text_of(record).endswith("queue=quiet msgs=0")


def test_errors_tell_the_queue_and_the_code(collector: Collector, shared_api: Api) -> None:
    collector.next()
    shared_api.post("Complete", {"queue": "no", "seq_number": 7, "lock_token": "t"})
    record = collector.next()
    assert record.level == logging.WARNING
    said = "QueueService/Complete status=409 queue=no seq=7 code=lock_lost"
    assert text_of(record) == said


def test_who_was_refused_is_told_by_address_and_by_the_id_of_the_key(
    mq: Embedded, clock: ManualClock
) -> None:
    sender, expired, revoked = (create(mq, "send", expires_at=at) for at in (None, "1s", None))
    mq.create_queue("q")
    mq.revoke_key(revoked.key.id)
    clock.advance(1000)
    asked = {
        MONITOR: "status=403 peer=127.0.0.1 code=permission_denied",
        sender.token: f"status=403 peer=127.0.0.1 key={sender.key.id} code=permission_denied",
        expired.token: f"status=401 peer=127.0.0.1 key={expired.key.id} code=unauthenticated",
        revoked.token: f"status=401 peer=127.0.0.1 key={revoked.key.id} code=unauthenticated",
        generate_token(): "status=401 peer=127.0.0.1 code=unauthenticated",
        "guessed": "status=401 peer=127.0.0.1 code=unauthenticated",
        None: "status=401 peer=127.0.0.1 code=unauthenticated",
        TOKEN: "status=200 queue=q",
    }
    with (
        serving(mq, tokens=[TOKEN], monitor_tokens=[MONITOR]) as url,
        collecting(url) as collector,
    ):
        for token, said in asked.items():
            Api(url, token).post("Stats", {"queue": "q"})
            text = text_of(collector.next())
            assert text == f"QueueService/Stats {said}"
            assert token is None or token not in text


def test_an_address_of_version_4_is_one_on_a_socket_for_both_versions(mq: Embedded) -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("no sockets for both versions")
    with serving(mq, ":0", tokens=[TOKEN]) as url, collecting(url) as collector:
        Api(url, None).post("Stats", {"queue": "q"})
        assert text_of(collector.next()) == (
            "QueueService/Stats status=401 peer=127.0.0.1 code=unauthenticated"
        )


def test_where_the_server_knows_no_address_none_is_told(mq: Embedded) -> None:
    async def ask() -> None:
        async def receive() -> dict[str, Any]:
            return {"type": "http.request"}

        async def send(event: MutableMapping[str, Any]) -> None:
            pass

        scope = {"type": "http", "method": "POST", "path": "/own", "headers": [], "client": None}
        await asgi(mq, tokens=[TOKEN])(scope, receive, send)

    collector = Collector()
    with handled_by(collector):
        asyncio.run(ask())
        while (record := collector.next()).path != "/own":
            pass
    assert text_of(record) == "/own status=401 code=unauthenticated"


def test_bodies_properties_and_credentials_are_never_told(
    collector: Collector, shared_url: str
) -> None:
    api = Api(shared_url)
    api.ok("CreateQueue", name="hidden")
    message = {"body": "c2VjcmV0", "properties": {"secret": "secret"}, "subject": "secret"}
    api.ok("Send", queue="hidden", messages=[message])
    (received,) = api.receive("hidden")
    lease = {"seq_number": received["seq_number"], "lock_token": received["lock_token"]}
    api.ok("Reject", queue="hidden", **lease, dead_letter_description="secret")
    text = "\n".join(str(collector.next()) for _ in range(4))
    assert text.count("queue=hidden") == 4
    for hidden in ("secret", "c2VjcmV0", lease["lock_token"], TOKEN):
        assert hidden not in text


def own(records: list[logging.LogRecord]) -> list[logging.LogRecord]:
    """Without what a broker of another test writes in these moments."""
    return [one for one in records if any(r.path == "/own" for r in vars(one).get("requests", ()))]


def test_a_batch_reaches_logging_as_one_record(caplog: pytest.LogCaptureFixture) -> None:
    log = RequestLog()
    with caplog.at_level(logging.INFO, LOGGER.name):
        for status in (200, 200, 404, 200):
            log.add("/own", status, ("queue", "q"), 0.001, False)
        log.flush()
    records = own(caplog.records)
    assert [record.levelname for record in records] == ["INFO", "WARNING", "INFO"]
    line = "/own status=200 queue=q dur=1ms"
    assert records[0].getMessage() == f"{line}\n{line}"


def test_a_log_that_cannot_keep_up_says_what_it_dropped(caplog: pytest.LogCaptureFixture) -> None:
    log = RequestLog(max_pending=2)
    with caplog.at_level(logging.INFO, LOGGER.name):
        for _ in range(5):
            log.add("/own", 200, (), 0.0, False)
        log.flush()
    assert "3 request records were dropped" in caplog.text


def test_what_nobody_listens_to_is_not_collected(caplog: pytest.LogCaptureFixture) -> None:
    log = RequestLog()
    with caplog.at_level(logging.ERROR, LOGGER.name):
        log.add("/own", 200, (), 0.0, False)
    with caplog.at_level(logging.INFO, LOGGER.name):
        log.flush()
    assert not own(caplog.records)


@pytest.mark.parametrize("color", [False, True])
def test_the_formatter_gives_every_request_its_line(
    color: bool, caplog: pytest.LogCaptureFixture
) -> None:
    log = RequestLog()
    formatter = LineFormatter(color=color)
    log.add("/own", 500, (), 0.0, False)
    log.add("/own", 500, (), 0.0, False)
    log.flush()
    (batch,) = own(caplog.records)
    plain = logging.LogRecord("x", logging.ERROR, "", 0, "plain %d", (1,), None)
    lines = [*formatter.format(batch).split("\n"), formatter.format(plain)]
    texts = ["/own status=500 dur=0s", "/own status=500 dur=0s", "plain 1"]
    for line, text in zip(lines, texts, strict=True):
        bare = line.removeprefix("\x1b[31m").removesuffix("\x1b[0m")
        assert (bare != line) == color
        assert bare[19] == "."
        assert bare[24:] == f"ERROR   {text}"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.0000004, "0s"),
        (0.00035, "350µs"),
        (0.001, "1ms"),
        (0.0012345, "1.234ms"),
        (0.9999999, "1s"),
        (2.5, "2.5s"),
        (60.25, "1m0.25s"),
        (3600, "60m0s"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_a_name_cannot_forge_a_line() -> None:
    record = RequestRecord(0.0, 20, "/", 200, ("queue", "a\nb status=500", "sub", "x" * 999), 0.0)
    assert str(record) == f'/ status=200 queue="a\\nb status=500" sub="{"x" * 256}\\u2026" dur=0s'

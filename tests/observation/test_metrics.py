"""`/metrics`: what it serves, to whom, and what Prometheus makes of it."""

from __future__ import annotations

import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

import mqlite
from broker.support import Api
from external import PROMETHEUS, program
from mqlite.broker.exposition import SLICE, gauge, written
from mqlite.broker.metrics import exposition
from mqlite.broker.serve import serving
from mqlite.clock import ManualClock
from mqlite.observation.decoding import decode
from observation.looks import broken
from patience import eventually

ADMIN = "admin-secret"
MONITOR = "monitor-secret"

GAUGE, COUNTER, HISTOGRAM = "gauge", "counter", "histogram"
DOCUMENTED = {
    "mqlite_info": (GAUGE, {"version", "backend", "schema_version"}),
    "mqlite_start_time_seconds": (GAUGE, set()),
    "mqlite_sample_timestamp_seconds": (GAUGE, set()),
    "mqlite_collection_success": (GAUGE, set()),
    "mqlite_collection_status": (GAUGE, {"state", "error_code"}),
    "mqlite_collection_last_success_timestamp_seconds": (GAUGE, set()),
    "mqlite_collection_duration_seconds": (GAUGE, set()),
    "mqlite_entities": (GAUGE, {"kind"}),
    "mqlite_queue_messages": (GAUGE, {"queue", "state"}),
    "mqlite_queue_retained_messages": (GAUGE, {"queue"}),
    "mqlite_queue_unexpected_messages": (GAUGE, {"queue"}),
    "mqlite_queue_oldest_message_age_seconds": (GAUGE, {"queue"}),
    "mqlite_message_events_total": (COUNTER, {"queue", "event"}),
    "mqlite_rpc_requests_total": (COUNTER, {"rpc", "code"}),
    "mqlite_rpc_request_duration_seconds_total": (COUNTER, {"rpc", "code"}),
    "mqlite_rpc_duration_seconds": (HISTOGRAM, {"rpc"}),
    "mqlite_authentication_total": (COUNTER, {"outcome"}),
    "mqlite_storage_operations_total": (COUNTER, {"operation", "outcome", "error_code"}),
    "mqlite_storage_operation_duration_seconds": (
        HISTOGRAM,
        {"operation", "outcome", "error_code"},
    ),
    "mqlite_storage_retries_total": (COUNTER, {"operation", "outcome", "error_code"}),
    "mqlite_storage_pool_connections": (GAUGE, {"state"}),
    "mqlite_storage_pool_waits_total": (COUNTER, set()),
    "mqlite_storage_pool_wait_duration_seconds_total": (COUNTER, set()),
    "mqlite_storage_read_available": (GAUGE, set()),
    "mqlite_storage_ping_seconds": (GAUGE, set()),
    "mqlite_storage_size_available": (GAUGE, set()),
    "mqlite_storage_size_bytes": (GAUGE, set()),
    "mqlite_maintenance_enabled": (GAUGE, {"task"}),
    "mqlite_maintenance_runs_total": (COUNTER, {"task", "outcome"}),
    "mqlite_maintenance_duration_seconds": (HISTOGRAM, {"task"}),
    "mqlite_maintenance_last_success_timestamp_seconds": (GAUGE, {"task"}),
    "mqlite_filter_failures_total": (COUNTER, {"stage"}),
    # Names of v0.3.1, which stay
    "mqlite_queue_total": (GAUGE, {"queue"}),
    "mqlite_queue_oldest_message_age_ms": (GAUGE, {"queue"}),
    "mqlite_messages_completed_total": (COUNTER, {"queue"}),
}
OURS = {
    "mqlite_storage_wal_size_bytes": (GAUGE, set()),
    "mqlite_storage_free_pages": (GAUGE, set()),
    "mqlite_maintenance_lag_seconds": (GAUGE, {"task"}),
}


@pytest.fixture
def url(mq: mqlite.Embedded) -> Iterator[str]:
    with serving(mq, tokens=[ADMIN], monitor_tokens=[MONITOR], metrics=True) as where:
        yield where


@pytest.fixture
def scrape(url: str) -> Callable[[], dict[str, Any]]:
    """Values by name and labels, as a monitor gets them."""

    def values() -> dict[str, Any]:
        reply = Api(url, MONITOR).request("GET", "/metrics")
        assert reply.status == 200
        return {_shown(sample): sample.value for sample in _samples(reply.raw)}

    return values


def _samples(text: bytes) -> Iterator[Sample]:
    for family in text_string_to_metric_families(text.decode()):
        yield from family.samples


def _shown(sample: Sample) -> str:
    labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
    return f"{sample.name}{{{labels}}}" if labels else sample.name


def test_every_documented_family_is_there_with_its_labels(mq: mqlite.Embedded) -> None:
    found: dict[str, tuple[str, set[str]]] = {}
    for family in text_string_to_metric_families(exposition(_with_http(mq)).decode()):
        name = family.name + ("_total" if family.type == COUNTER else "")
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        found[name] = (family.type, labels)
    assert found == DOCUMENTED | OURS


def _with_http(mq: mqlite.Embedded) -> Any:
    with serving(mq, tokens=[ADMIN]) as url:
        return decode(Api(url, ADMIN).post("Observe", {}).raw)


def test_the_content_type(url: str) -> None:
    reply = Api(url, MONITOR).request("GET", "/metrics")
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_values_are_those_of_the_observation(
    mq: mqlite.Embedded, clock: ManualClock, scrape: Callable[[], dict[str, Any]]
) -> None:
    mq.create_queue('a "quoted" \\ ünï')
    mq.send_batch("q", [b"a", b"b", b"c"])
    [message] = mq.receive("q")
    message.complete()
    mq.receive("q")
    clock.advance(2500)
    found = scrape()
    assert found["mqlite_queue_messages{queue=q,state=active}"] == 1
    assert found["mqlite_queue_messages{queue=q,state=locked}"] == 1
    assert found["mqlite_queue_messages{queue=q,state=deferred}"] == 0
    assert found["mqlite_queue_retained_messages{queue=q}"] == 2
    assert found["mqlite_queue_oldest_message_age_seconds{queue=q}"] == 2.5
    assert found["mqlite_message_events_total{event=enqueued,queue=q}"] == 3
    assert found["mqlite_message_events_total{event=dead_lettered,queue=q}"] == 0
    assert found["mqlite_start_time_seconds"] == (clock.now() - 2500) / 1000
    assert found["mqlite_sample_timestamp_seconds"] == clock.now() / 1000
    assert found["mqlite_entities{kind=queue}"] == 2
    assert found['mqlite_queue_retained_messages{queue=a "quoted" \\ ünï}'] == 0


def test_the_five_old_families_are_views_of_the_new(
    mq: mqlite.Embedded, clock: ManualClock, scrape: Callable[[], dict[str, Any]]
) -> None:
    mq.send_batch("q", [b"a", b"b"])
    mq.receive("q")[0].complete()
    clock.advance(1234)
    found = scrape()
    assert (
        found["mqlite_queue_total{queue=q}"]
        == found["mqlite_queue_retained_messages{queue=q}"]
        == 1
    )
    assert found["mqlite_queue_oldest_message_age_ms{queue=q}"] == 1234
    assert found["mqlite_messages_completed_total{queue=q}"] == 1
    assert found["mqlite_message_events_total{event=completed,queue=q}"] == 1
    assert found["mqlite_rpc_duration_seconds_count{rpc=QueueService/Send}"] == 0


def test_what_can_happen_is_zero_before_it_does(scrape: Callable[[], dict[str, Any]]) -> None:
    found = scrape()
    for name in (
        "mqlite_rpc_requests_total{code=queue_changed,rpc=AdminService/DeleteQueue}",
        "mqlite_rpc_duration_seconds_bucket{le=+Inf,rpc=QueueService/Send}",
        "mqlite_rpc_duration_seconds_sum{rpc=QueueService/Send}",
        "mqlite_storage_operations_total{error_code=outcome_unknown,operation=write,outcome=outcome_unknown}",
        "mqlite_storage_operations_total{error_code=full,operation=transaction,outcome=error}",
        "mqlite_authentication_total{outcome=backend_error}",
        "mqlite_maintenance_runs_total{outcome=interrupted,task=reclaim}",
        "mqlite_filter_failures_total{stage=compile}",
        "mqlite_messages_completed_total{queue=q}",
    ):
        assert found[name] == 0, name


def test_a_failing_database_leaves_the_gauges_out_and_the_counters_in(
    mq: mqlite.Embedded, path: Path, scrape: Callable[[], dict[str, Any]]
) -> None:
    mq.send("q", b"x")
    with broken(path):
        found = scrape()
    assert found["mqlite_collection_success"] == 0
    assert found["mqlite_collection_status{error_code=other,state=unavailable}"] == 1
    assert not [name for name in found if name.startswith(("mqlite_queue_", "mqlite_entities"))]
    assert found["mqlite_message_events_total{event=enqueued,queue=q}"] == 1
    found = scrape()
    assert found["mqlite_collection_success"] == 1
    assert found["mqlite_collection_status{error_code=,state=available}"] == 1


def test_what_cannot_be_measured_is_left_out() -> None:
    with mqlite.open(":memory:", clock=ManualClock()) as mq:
        names = {sample.name for sample in _samples(exposition(mq.observe()))}
    assert "mqlite_storage_size_available" in names
    assert not {"mqlite_storage_size_bytes", "mqlite_storage_wal_size_bytes"} & names


def test_no_name_of_a_caller_becomes_a_label_but_that_of_a_queue(
    mq: mqlite.Embedded, url: str, scrape: Callable[[], dict[str, Any]]
) -> None:
    mq.subscribe("topic-name", "sub", expr='subject == "expression"')
    mq.send("q", b"body", message_id="message-id", subject="subject-name")
    Api(url, "wrong-token").request("POST", "/mqlite.v1.QueueService/Invented")
    text = "\n".join(scrape())
    for secret in (
        "topic-name",
        "expression",
        "message-id",
        "subject-name",
        "wrong-token",
        "Invented",
        ADMIN,
        MONITOR,
    ):
        assert secret not in text


@pytest.mark.parametrize(
    "name", ['quo"te', "back\\slash", '\\" 1\\n', "{a='b'} # x", "\u2028", "é" * 127, " "]
)
def test_any_name_of_a_queue_is_read_back(mq: mqlite.Embedded, name: str) -> None:
    mq.create_queue(name)
    mq.send(name, b"x")
    found = {
        sample.labels.get("queue"): sample.value
        for sample in _samples(exposition(mq.observe()))
        if sample.name == "mqlite_queue_total"
    }
    assert found[name] == 1


def test_a_line_break_cannot_begin_a_sample() -> None:
    family = gauge("g", "A gauge.", ("queue",), [(("a\nb",), 1)])
    assert written([family]) == b'# HELP g A gauge.\n# TYPE g gauge\ng{queue="a\\nb"} 1\n'


def test_a_long_family_leaves_the_interpreter_to_senders_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    breaks: list[float] = []
    monkeypatch.setattr("mqlite.broker.exposition.sleep", breaks.append)
    short = gauge("g", "A gauge.", ("n",), [((str(n),), n) for n in range(SLICE)])
    assert breaks == []
    long = gauge("g", "A gauge.", ("n",), [((str(n),), n) for n in range(3 * SLICE + 1)])
    assert len(breaks) == 3
    assert min(breaks) > 0
    assert long[: len(short)] == short
    assert long[-1] == f'g{{n="{3 * SLICE}"}} {3 * SLICE}'
    assert len(long) == 2 + 3 * SLICE + 1


def test_who_may_scrape(mq: mqlite.Embedded, url: str) -> None:
    keys = {
        name: mq.create_key(identifier * 32, name=name, permissions=permissions).token
        for identifier, name, permissions in (
            ("1", "sender", ["send", "listen"]),
            ("2", "manager", ["manage"]),
        )
    }
    for token, status in (
        (None, 401),
        ("wrong", 401),
        (keys["sender"], 403),
        (keys["manager"], 200),
        (ADMIN, 200),
        (MONITOR, 200),
    ):
        assert Api(url, token).request("GET", "/metrics").status == status
    assert Api(url, MONITOR).post("Stats", {"queue": "q"}).status == 403


def test_without_being_asked_for_there_are_none(mq: mqlite.Embedded) -> None:
    with serving(mq, tokens=[ADMIN]) as url:
        assert Api(url, ADMIN).request("GET", "/metrics").status == 404
        assert "metrics" not in Api(url, None).request("GET", "/").json


def test_the_discovery_card_names_them(url: str) -> None:
    assert Api(url, None).request("GET", "/").json["metrics"] == "/metrics"


def test_promtool_finds_fault_with_two_old_names_only(mq: mqlite.Embedded) -> None:
    promtool = program("promtool", PROMETHEUS)
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=exposition(_with_http(mq)), capture_output=True
    )
    assert checked.stderr.decode().splitlines() == [
        "mqlite_queue_oldest_message_age_ms metric names should not contain abbreviated units",
        'mqlite_queue_total non-counter metrics should not have "_total" suffix',
    ]


def test_prometheus_scrapes_it(mq: mqlite.Embedded, url: str, tmp_path: Path) -> None:
    """A real server, with the credential in a file as the documentation says."""
    prometheus = program("prometheus", PROMETHEUS)
    mq.send_batch("q", [b"a", b"b"])
    (tmp_path / "token").write_text(MONITOR)
    (tmp_path / "prometheus.yml").write_text(
        json.dumps(
            {
                "scrape_configs": [
                    {
                        "job_name": "mqlite",
                        "scrape_interval": "1s",
                        "scrape_timeout": "1s",
                        "authorization": {"credentials_file": str(tmp_path / "token")},
                        "static_configs": [{"targets": [url.removeprefix("http://")]}],
                    }
                ]
            }
        )
    )
    with _running(prometheus, tmp_path) as server:
        eventually(lambda: _ask(server, "up") == [1.0])
        assert _ask(server, 'mqlite_queue_messages{queue="q",state="active"}') == [2.0]
        assert _ask(server, "mqlite_collection_success") == [1.0]
        assert _ask(server, "sum(mqlite_message_events_total)") == [2.0]


@contextmanager
def _running(prometheus: str, folder: Path) -> Iterator[str]:
    """Prometheus on a port of its own choice, for a `with` block; yields its URL."""
    log = folder / "prometheus.log"
    command = [
        prometheus,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--web.listen-address=127.0.0.1:0",
    ]
    with log.open("wb") as errors, subprocess.Popen(command, stderr=errors) as process:
        eventually(lambda: "Server is ready" in log.read_text() or process.poll() is not None)
        [line] = [each for each in log.read_text().splitlines() if "Listening on" in each]
        try:
            yield "http://" + line.rpartition("address=")[2].strip()
        finally:
            process.terminate()


def _ask(server: str, query: str) -> list[float]:
    where = f"{server}/api/v1/query?query={urllib.parse.quote(query)}"
    with urllib.request.urlopen(where, timeout=10) as answer:
        found = json.load(answer)
    return [float(each["value"][1]) for each in found["data"]["result"]]

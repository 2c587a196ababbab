"""docs/observability.md against the code: every field, word and family, and no other."""

from __future__ import annotations

import re
from typing import get_args

import mqlite
from mqlite.broker.metrics import exposition
from mqlite.clock import ManualClock
from mqlite.observation.schema import Observation
from mqlite.observation.vocabulary import (
    AUTHENTICATION,
    ERROR_CODES,
    EVENTS,
    REQUEST_BOUNDS,
    STORAGE_BOUNDS,
    STORAGE_RESULTS,
    TASKS,
    Category,
)
from observation.test_metrics import DOCUMENTED, OURS

from . import pages

PAGE = "docs/observability.md"


def named(title: str, column: int = 0) -> list[str]:
    return [
        name for row in pages.rows(pages.section(PAGE, title)) for name in pages.quoted(row[column])
    ]


def test_every_field_is_named() -> None:
    assert sorted(named("What is in it")) == sorted(Observation.__struct_fields__)


def test_every_event_is_named() -> None:
    assert sorted(named("Events")) == sorted(EVENTS)


def test_every_outcome_and_code_is_named() -> None:
    assert set(named("Storage")) == {outcome for outcome, _ in STORAGE_RESULTS}
    assert set(named("Storage", 1)) == set(ERROR_CODES)


def test_every_outcome_of_authentication_is_named() -> None:
    assert sorted(named("Requests")) == sorted(AUTHENTICATION)


def test_every_category_is_named() -> None:
    assert sorted(named("Errors")) == sorted(get_args(Category))


def test_the_bounds_of_the_histograms_are_named() -> None:
    page = pages.section(PAGE, "What is in it")
    requests = ", ".join(map(str, REQUEST_BOUNDS))
    before = ", ".join(f"{bound:f}".rstrip("0") for bound in STORAGE_BOUNDS[:3])
    assert f"seconds, are {requests}; for storage and maintenance {before} before" in " ".join(
        page.split()
    )


def test_every_task_is_named() -> None:
    with mqlite.open(":memory:", clock=ManualClock()) as mq:
        here = {each.task for each in mq.observe().maintenance}
    assert set(named("Maintenance")) == here | {*TASKS, "checkpoint", "transactions"}


def test_every_family_is_named_with_its_labels() -> None:
    found: dict[str, set[str]] = {}
    for families, _, labels in pages.rows(pages.section(PAGE, "Metrics")):
        for family in pages.quoted(families):
            words = pages.quoted(labels.partition(":")[0])
            found[family] = set(words)
    assert found == {name: labels for name, (_, labels) in (DOCUMENTED | OURS).items()}


def test_every_name_in_a_line_of_a_request_is_explained() -> None:
    folder = pages.ROOT / "src/mqlite/broker"
    source = "".join(file.read_text() for file in folder.glob("*.py"))
    told = {
        name
        for notes in re.findall(r"[Nn]otes \+?= \((.*)\)", source)
        for name in re.findall(r'"(\w+)"', notes)
    }
    assert len(told) > 5
    explained = pages.quoted(pages.prose(pages.section(PAGE, "Requests in the log")))
    assert told - {"internal"} <= set(explained)


def test_every_log_event_is_named() -> None:
    tellers = ("storage", "maintenance", "reporting")
    folder = pages.ROOT / "src/mqlite/observation"
    source = "".join((folder / f"{name}.py").read_text() for name in tellers)
    told = set(re.findall(r'"((?:storage|maintenance)\.[a-z]+)"', source))
    assert set(named("Failures in the log")) == told


def test_help_text_is_there_for_every_family() -> None:
    with mqlite.open(":memory:", clock=ManualClock()) as mq:
        text = exposition(mq.observe()).decode()
    assert text.count("# HELP") == text.count("# TYPE")
    assert not re.search(r"# HELP \S+ *\n", text)

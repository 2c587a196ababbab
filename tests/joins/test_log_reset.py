"""On a SQLite with the WAL-reset bug: who is warned about, and who is not."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

import mqlite
from mqlite.stores import callers
from mqlite.stores.sqlite import foreign

from .helpers import noticed
from .modes import alchemy_caller, sqlite3_caller


@pytest.fixture(autouse=True)
def affected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "has_log_reset_bug", lambda version: True)


@pytest.fixture(autouse=True)
def prepared_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that another test has left behind are none of this test's."""
    left = callers._known.copy()
    for known in left.values():
        monkeypatch.setattr(known, "prepared", False)


def warned(mq: mqlite.Embedded, caplog: pytest.LogCaptureFixture) -> bool:
    noticed(mq)
    shown = any("WAL-reset" in warning for warning in mq.status().warnings)
    assert caplog.text.count("WAL-reset") == int(shown)
    return shown


@pytest.fixture
def raw(path: Path, mq: mqlite.Embedded, resources: ExitStack) -> sqlite3.Connection:
    return resources.enter_context(closing(sqlite3.connect(path)))


def test_an_unprepared_connection_is_warned_about_once(
    mq: mqlite.Embedded, raw: sqlite3.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    assert not warned(mq, caplog)
    for number in range(3):
        with raw:
            raw.execute("INSERT INTO orders VALUES (?)", (number,))
        assert warned(mq, caplog)


@pytest.mark.parametrize("way", ["join", "outbox"])
def test_an_unprepared_connection_that_sends_is_too(
    mq: mqlite.Embedded, raw: sqlite3.Connection, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    with raw:
        {"join": mq.join, "outbox": mqlite.outbox}[way](raw).send("q", b"x")
    assert warned(mq, caplog)


def test_prepared_ones_are_not(
    mq: mqlite.Embedded, path: Path, resources: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    for caller in (
        sqlite3_caller(path, resources, configured=True),
        alchemy_caller(path, resources, configured=True),
    ):
        with caller.transaction():
            caller.order(1)
        assert not warned(mq, caplog)
        with caller.transaction():
            mqlite.outbox(caller.handle).send("q", b"x")
        assert not warned(mq, caplog)


def test_a_process_known_to_prepare_is_trusted_with_what_tells_nothing(
    mq: mqlite.Embedded, raw: sqlite3.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    # As another process would; this one knows of no prepared connection.
    raw.execute("PRAGMA wal_autocheckpoint = 0")
    with raw:
        mqlite.outbox(raw).send("q", b"x")
    assert not warned(mq, caplog)
    with raw:
        raw.execute("INSERT INTO orders VALUES (1)")
    assert not warned(mq, caplog)
    raw.execute("PRAGMA wal_autocheckpoint = 1000")
    with raw:
        mqlite.outbox(raw).send("q", b"x")
    assert warned(mq, caplog)


def test_a_rollback_is_no_commit(
    mq: mqlite.Embedded, raw: sqlite3.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    mq.join(raw).send("q", b"never")
    raw.rollback()
    assert not warned(mq, caplog)


def test_a_sqlite_without_the_bug_says_nothing(
    mq: mqlite.Embedded,
    raw: sqlite3.Connection,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(foreign, "has_log_reset_bug", lambda version: False)
    with caplog.at_level(logging.DEBUG), raw:
        mq.join(raw).send("q", b"x")
    assert not warned(mq, caplog)

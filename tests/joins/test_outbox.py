"""What `mqlite.outbox` asks of the file, and what it leaves for the owner."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import mqlite
from forking import forks
from mqlite.stores.sqlite.ledger import SCHEMA_VERSION

from .helpers import bodies


@pytest.fixture
def closed(path: Path) -> Path:
    """A queue that nobody owns at the moment."""
    with mqlite.open(path) as mq:
        mq.create_queue("q")
    return path


def test_a_file_without_a_queue_says_how_to_make_one(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE orders (id)")
        with pytest.raises(mqlite.SchemaMismatch, match=r"no queue.*mqlite\.open\('.*app\.db'\)"):
            mqlite.outbox(connection)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mqlite_meta (key, value)")
        with pytest.raises(mqlite.SchemaMismatch, match="no queue"):
            mqlite.outbox(connection)


@pytest.mark.parametrize("factory", [str, bytes], ids=["str", "bytes"])
def test_another_schema_is_named_with_what_to_do(
    closed: Path, factory: Callable[[bytes], object]
) -> None:
    with closing(sqlite3.connect(closed)) as connection:
        connection.text_factory = factory
        connection.execute("UPDATE mqlite_meta SET value = 'py9' WHERE key = 'schema_version'")
        with pytest.raises(
            mqlite.SchemaMismatch, match=rf"py9.*needs {SCHEMA_VERSION}.*same version of mqlite"
        ):
            mqlite.outbox(connection)


def test_it_needs_no_owner(closed: Path) -> None:
    with closing(sqlite3.connect(closed)) as connection:
        with connection:
            mqlite.outbox(connection).send("q", b"early", at="+1h")
            mqlite.outbox(connection).send("q", b"now", ttl="1h")
        connection.execute("BEGIN IMMEDIATE")
        mqlite.outbox(connection).send("q", b"never")
    with mqlite.open(closed) as mq:
        assert bodies(mq) == [b"early", b"now"]
        assert mq.stats("q").scheduled == 1


def test_the_next_owner_tells_what_happened_meanwhile(closed: Path) -> None:
    with closing(sqlite3.connect(closed)) as connection, connection:
        mqlite.outbox(connection).send_batch("q", [b"a", b"b"])
    with mqlite.open(closed) as mq:
        counted: Counter[str] = Counter()
        mq.core.store.events.append(
            lambda events: [counted.update({event.event: event.number}) for event in events]
        )
        [message] = mq.receive("q", wait="20s")
        assert message.body == b"a"
        assert counted["delivered"] == 1
        with mq.transaction() as tx:
            assert tx.execute("SELECT * FROM mqlite_effects").fetchall() == []


def test_a_body_limit_of_ones_own(closed: Path) -> None:
    with closing(sqlite3.connect(closed)) as connection:
        outbox = mqlite.outbox(connection, max_message_bytes=3)
        with pytest.raises(mqlite.MessageTooLarge):
            outbox.send("q", b"four")
        outbox.send("q", b"abc")
        connection.commit()
    with mqlite.open(closed) as mq:
        assert bodies(mq) == [b"abc"]


@forks
def test_a_forked_process_sends_with_a_connection_of_its_own(
    mq: mqlite.Embedded, path: Path
) -> None:
    child = os.fork()
    if not child:
        status = 1
        try:
            with closing(sqlite3.connect(path)) as connection:
                with connection:
                    mqlite.outbox(connection).send("q", b"from the child")
                try:
                    mq.join(connection)
                except mqlite.WrongProcess:
                    status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    [message] = mq.receive("q", wait="20s")
    assert message.body == b"from the child"

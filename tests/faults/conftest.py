"""A broker in a process of its own, and clients of it, sync and async."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import mqlite
from client.conftest import Connect, connect as client, kind
from faults.brokers import TOKEN, BrokerProcess

__all__ = ["client", "kind"]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "mq.db"
    with mqlite.open(str(path)) as mq:
        mq.create_queue("q", lock_duration="1h", max_delivery_count=1000)
        mq.create_queue("short", lock_duration="400ms", max_delivery_count=1000)
    return path


@pytest.fixture
def broker(database: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(database) as broker:
        yield broker


@pytest.fixture
def connect(client: Connect) -> Connect:
    return partial(client, token=TOKEN)

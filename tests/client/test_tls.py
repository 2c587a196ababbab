"""Brokers behind TLS: verified unless the caller says by what else."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest
import trustme

from client import stub
from client.conftest import Connect
from mqlite.errors import Unavailable


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def broker(authority: trustme.CA) -> Iterator[stub.StubBroker]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with stub.serving(stub.empty, tls=context) as broker:
        yield broker


def test_a_broker_nobody_vouches_for_is_sent_nothing(
    connect: Connect, broker: stub.StubBroker
) -> None:
    mq = connect(broker.url, token="secret")
    with pytest.raises(Unavailable, match="certificate verify failed"):
        mq.list_queues()
    assert broker.requests == []


def test_the_callers_own_authorities(
    connect: Connect, broker: stub.StubBroker, authority: trustme.CA
) -> None:
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    mq = connect(broker.url, ssl_context=trusting)
    for _ in range(2):
        assert mq.list_queues() == []
    assert broker.methods == ["ListQueues"] * 2

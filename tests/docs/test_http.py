"""docs/http.md against the wire: its paths, fields, settings and errors."""

from __future__ import annotations

import re

import msgspec
import pytest

from mqlite import errors, wire
from mqlite.broker.routes import ROUTES
from mqlite.keys import AccessKey, CreatedKey, KeyPage
from mqlite.model import MessageData

from . import pages

PAGE = "docs/http.md"


def documented() -> dict[str, tuple[list[str], list[str]]]:
    """The request and answer fields of every path; "as X" stands for those of X."""
    table: dict[str, tuple[list[str], list[str]]] = {}
    for service in ("QueueService", "AdminService", "AuthService"):
        for path, request, answer in pages.rows(pages.section(PAGE, service)):
            fields = pages.quoted(request)
            if request.startswith("as "):
                name = request.removeprefix("as ")
                fields = table[f"/mqlite.v1.{service}/{name}"][0]
            table[pages.quoted(path)[0]] = fields, pages.quoted(answer)
    return table


def test_every_route_is_documented_and_no_other() -> None:
    assert set(documented()) == set(ROUTES)


def test_every_path_of_the_page_exists() -> None:
    named = set(re.findall(r"/mqlite\.v1\.\w+/\w+", pages.text(PAGE)))
    named |= {
        f"/mqlite.v1.{name}"
        for name in re.findall(
            r"(?<!mqlite\.v1\.)\b((?:Queue|Admin|Auth)Service/\w+)", pages.text(PAGE)
        )
    }
    assert named == set(ROUTES)


@pytest.mark.parametrize("path", ROUTES)
def test_request_fields(path: str) -> None:
    decoder = ROUTES[path].decoder
    expected = () if decoder is None else decoder.type.__struct_fields__
    assert documented()[path][0] == list(expected)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("QueueService/Send", wire.SendResponse),
        ("QueueService/Receive", wire.ReceiveResponse),
        ("QueueService/ReceiveDeferred", wire.MessagesResponse),
        ("QueueService/Complete", wire.SettleResponse),
        ("QueueService/CompleteBatch", wire.CompleteBatchResponse),
        ("AdminService/DeleteQueue", wire.DeletedResponse),
        ("AdminService/ListQueues", wire.ListQueuesResponse),
        ("AdminService/ListSubscriptions", wire.ListSubscriptionsResponse),
        ("AdminService/Redrive", wire.RedriveResponse),
        ("AdminService/Purge", wire.PurgeResponse),
        ("AdminService/Status", wire.StatusResponse),
        ("AuthService/CreateKey", CreatedKey),
        ("AuthService/ListKeys", KeyPage),
        ("AuthService/RevokeKey", wire.RevokeKeyResponse),
    ],
)
def test_answer_fields(path: str, answer: type[msgspec.Struct]) -> None:
    assert documented()[f"/mqlite.v1.{path}"][1] == list(answer.__struct_fields__)


@pytest.mark.parametrize(
    ("title", "fields"),
    [
        ("Messages", MessageData.__struct_fields__),
        ("Settings", wire.ConfigFields.__struct_fields__),
    ],
)
def test_tables_of_fields(title: str, fields: tuple[str, ...]) -> None:
    table = pages.rows(pages.section(PAGE, title))
    assert sorted(name for row in table for name in pages.quoted(row[0])) == sorted(fields)


def test_fields_of_a_key() -> None:
    described = re.search(r"A key is (.*?);", pages.section(PAGE, "AuthService"), re.DOTALL)
    assert described is not None
    assert pages.quoted(described[1]) == list(AccessKey.__struct_fields__)


def test_permissions() -> None:
    table = dict(pages.rows(pages.section(PAGE, "Authentication"))[:3])
    send = [f"/mqlite.v1.QueueService/{name}" for name in pages.quoted(table["`send`"])]
    assert sorted(send) == sorted(path for path, route in ROUTES.items() if route.right == "send")
    others = [path for path in ROUTES if ".QueueService/" in path and path not in send]
    assert {ROUTES[path].right for path in others} == {"listen"}


def test_errors() -> None:
    table = {
        (int(row[0]), pages.quoted(row[1])[0]) for row in pages.rows(pages.section(PAGE, "Errors"))
    }
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    assert table == {
        (kind.status, kind.code) for kind in kinds if issubclass(kind, errors.MqliteError)
    }

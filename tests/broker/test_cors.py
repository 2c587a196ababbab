"""Cross-origin requests."""

from __future__ import annotations

import pytest

from broker.support import TOKEN, Api, exchange, path_of
from mqlite.broker.cors import Cors, origin_setting
from mqlite.broker.serve import serving
from mqlite.embedded import Embedded
from mqlite.errors import InvalidArgument

PREFLIGHT = {
    "access-control-allow-methods": "GET, POST, OPTIONS",
    "access-control-allow-headers": "Authorization, Content-Type",
    "access-control-max-age": "86400",
}


@pytest.mark.parametrize("path", ["/", "/nope", path_of("Send")])
def test_a_preflight_is_answered_before_authentication(mq: Embedded, path: str) -> None:
    with serving(mq, tokens=[TOKEN], cors="*") as url:
        reply = Api(url, None).request("OPTIONS", path, headers={"Origin": "http://evil"})
    assert (reply.status, reply.raw) == (204, b"")
    assert PREFLIGHT.items() <= reply.headers.items()
    assert reply.headers["access-control-allow-origin"] == "*"
    assert "vary" not in reply.headers
    assert "access-control-allow-credentials" not in reply.headers


def test_every_answer_carries_the_origin_verbatim(mq: Embedded) -> None:
    with serving(mq, tokens=[TOKEN], cors="https://a.example") as url:
        replies = [
            Api(url, None).post("Stats", {}),
            Api(url).post("Stats", {"queue": "nope"}),
            Api(url).request("GET", "/nope"),
            Api(url).request("GET", "/healthz"),
            Api(url).post("ListQueues", b""),
        ]
        malformed = exchange(url, b"nonsense\r\n\r\n")
    assert [reply.status for reply in replies] == [401, 404, 404, 200, 200]
    for reply in replies:
        assert reply.headers["access-control-allow-origin"] == "https://a.example"
        assert reply.headers["vary"] == "Origin"
    assert b"access-control-allow-origin: https://a.example\r\n" in malformed


def test_off_by_default(shared_api: Api) -> None:
    reply = shared_api.request("GET", "/", headers={"Origin": "http://a"})
    assert not any(name.startswith("access-control") for name in reply.headers)


@pytest.mark.parametrize(
    ("value", "auth", "origin"),
    [
        (None, True, "*"),
        (None, False, None),
        ("  ", True, "*"),
        ("", False, None),
        ("off", True, None),
        (" OFF ", True, None),
        ("*", False, "*"),
        (" https://a ", False, "https://a"),
    ],
)
def test_the_documented_setting(value: str | None, auth: bool, origin: str | None) -> None:
    assert origin_setting(value, auth=auth) == origin


@pytest.mark.parametrize("origin", ["", "a\r\nset-cookie: x", "é", "a\x00"])
def test_what_cannot_stand_in_a_header_is_refused(origin: str) -> None:
    with pytest.raises(InvalidArgument, match="origin"):
        Cors(origin)

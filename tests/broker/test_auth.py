"""Bearer tokens: who is let in, and that no token shows anywhere."""

from __future__ import annotations

import logging

import pytest

from broker.support import TOKEN, Api, exchange, path_of
from mqlite.broker.app import Broker
from mqlite.broker.auth import Authenticator, Tokens
from mqlite.broker.rights import ADMINISTRATOR, MONITOR
from mqlite.broker.serve import asgi, serving
from mqlite.embedded import Embedded
from mqlite.errors import InvalidArgument

STATS = path_of("Stats")


def get_with(url: str, *header_lines: str) -> bytes:
    """The first line of the answer to a ListQueues with these header lines."""
    lines = [
        f"POST {path_of('ListQueues')} HTTP/1.1",
        "Host: test",
        "Content-Length: 0",
        "Connection: close",
        *header_lines,
    ]
    return exchange(url, "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n").split(b"\r\n")[0]


@pytest.mark.parametrize("token", [TOKEN, "another"])
def test_every_configured_token_is_let_in(shared_url: str, token: str) -> None:
    assert get_with(shared_url, f"Authorization: Bearer {token}") == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ("Authorization:",),
        (f"Authorization: {TOKEN}",),
        ("Authorization: Bearer",),
        ("Authorization: Bearer wrong",),
        (f"Authorization: Bearer {TOKEN}x",),
        (f"Authorization: Bearer {TOKEN[:-1]}",),
        (f"Authorization: Bearer {TOKEN.upper()}",),
        (f"Authorization: bearer {TOKEN}",),
        (f"Authorization: Bearer  {TOKEN}",),
        (f"Authorization: Bearer\t{TOKEN}",),
        (f"Authorization: Basic {TOKEN}",),
        (f"Authorization: Bearer {TOKEN}, Bearer {TOKEN}",),
        (f"Authorization: Bearer {TOKEN}", f"Authorization: Bearer {TOKEN}"),
        (f"Authorization: Bearer {TOKEN}", "authorization: x"),
        ("Authorization: Bearer \xff\xfe",),
    ],
)
def test_everything_else_is_refused(shared_url: str, lines: tuple[str, ...]) -> None:
    assert get_with(shared_url, *lines) == b"HTTP/1.1 401 Unauthorized"


def test_a_refusal_says_neither_challenge_nor_token(shared_url: str) -> None:
    reply = Api(shared_url, "mqk_secret").post("Stats", {"queue": "q"})
    assert (reply.status, reply.code) == (401, "unauthenticated")
    assert "www-authenticate" not in reply.headers
    assert b"mqk_secret" not in reply.raw


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 200),
        ("GET", "/healthz", 200),
        ("POST", "/", 200),
        ("HEAD", "/healthz", 200),
        ("GET", "/healthz/", 401),
        ("GET", "/ui", 401),
        ("GET", "/uixyz", 401),
        ("GET", "/metrics", 401),
        ("GET", "/nope", 401),
        ("GET", STATS, 401),
        ("OPTIONS", STATS, 401),
        ("POST", "//", 401),
    ],
)
def test_what_is_open_without_a_token(shared_url: str, method: str, path: str, status: int) -> None:
    assert Api(shared_url, None).request(method, path).status == status


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nope", 404, "not_found"),
        ("GET", "/ui", 404, "not_found"),
        ("GET", "/metrics", 404, "not_found"),
        ("POST", STATS + "/", 404, "not_found"),
        ("POST", "/mqlite.v1.AuthService/RotateKey", 404, "not_found"),
        ("POST", "/mqlite.v1.queueservice/stats", 404, "not_found"),
        ("GET", STATS, 405, "unimplemented"),
        ("PUT", STATS, 405, "unimplemented"),
        ("OPTIONS", STATS, 405, "unimplemented"),
    ],
)
def test_path_and_method_are_checked_after_the_token(
    shared_api: Api, method: str, path: str, status: int, code: str
) -> None:
    reply = shared_api.request(method, path)
    assert (reply.status, reply.code) == (status, code)
    assert "allow" not in reply.headers
    if status == 404:
        assert reply.json["message"].startswith("no such path")


def test_off_opens_everything(mq: Embedded) -> None:
    with serving(mq, tokens="off") as url:
        assert Api(url, None).post("ListQueues", b"").status == 200
        assert Api(url, "anything").post("ListQueues", b"").status == 200
        assert Api(url, None).request("GET", "/").json["auth"] == "none"


@pytest.mark.parametrize(
    "tokens",
    [
        *([], [""], [" ", "\t"], "on", "secret", "", None, 5, [b"secret"]),
        *(["off"], ["mqk_a", " OFF "], ["a b"], ["a\nb"], ["kéy"]),
    ],
)
def test_tokens_that_would_lock_out_or_let_in_everybody_are_refused(
    mq: Embedded, tokens: Tokens
) -> None:
    with pytest.raises(InvalidArgument, match="tokens"):
        asgi(mq, tokens=tokens)


def test_tokens_are_trimmed_and_blank_ones_dropped() -> None:
    identify = Authenticator([" a ", ""], [" m ", " "]).identify
    assert identify("/x", [(b"authorization", b"Bearer a")]) == ADMINISTRATOR
    assert identify("/x", [(b"authorization", b"Bearer m")]) == MONITOR


def test_no_token_is_kept(mq: Embedded, caplog: pytest.LogCaptureFixture) -> None:
    broker = asgi(mq, tokens=["mqk_secret"])
    assert isinstance(broker, Broker)
    assert "mqk_secret" not in repr(vars(broker))
    for name in Authenticator.__slots__:
        assert "mqk_secret" not in repr(getattr(broker.auth, name))
    with caplog.at_level(logging.DEBUG), serving(mq, tokens=["mqk_secret"]) as url:
        Api(url, "mqk_secret").post("ListQueues", b"")
        Api(url, "mqk_secret2").post("ListQueues", b"")
    assert "status=401" in caplog.text
    assert "mqk_secret" not in caplog.text

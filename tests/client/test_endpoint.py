"""Endpoint strings."""

from __future__ import annotations

from typing import Any

import pytest

import mqlite
from mqlite.endpoint import parse_endpoint, same_endpoint, without_credentials
from mqlite.errors import InvalidArgument


@pytest.mark.parametrize(
    ("text", "base_url", "token"),
    [
        ("http://h", "http://h", ""),
        ("http://h:1234/", "http://h:1234", ""),
        ("https://h/base//", "https://h/base", ""),
        ("https://h/a%2Fb", "https://h/a%2Fb", ""),
        ("mqlite://h", "http://h:6754", ""),
        ("mqlite://h:99", "http://h:99", ""),
        ("mqlite://tok@h", "http://h:6754", "tok"),
        ("mqlite://t%40k@h/path", "http://h:6754", "t@k"),
        ("mqlites://tok@h", "https://h:6754", "tok"),
        ("mqlites://h:443/path", "https://h:443", ""),
        ("mqlite://h?tls=true", "https://h:6754", ""),
        ("mqlite://h?tls=false", "http://h:6754", ""),
        ("mqlite://h?tls=false&tls=true", "https://h:6754", ""),
        ("mqlites://h?tls=false", "https://h:6754", ""),
        ("mqlite://[::1]", "http://[::1]:6754", ""),
        ("mqlite://[::1]:99", "http://[::1]:99", ""),
        ("MQLITE://Host", "http://Host:6754", ""),
    ],
)
def test_what_an_endpoint_dials(text: str, base_url: str, token: str) -> None:
    assert parse_endpoint(text) == (base_url, token)


@pytest.mark.parametrize(
    "text",
    ["", "h", "h:6754", "ftp://h", "http://", "mqlite://", "mqlite://tok@", "http://:80",
     "mqlite://h:port", "http://h:99999", "http://[::1", "http://h/ x", "http://h\n"],
)  # fmt: skip
def test_what_is_no_endpoint(text: str) -> None:
    with pytest.raises(InvalidArgument, match="invalid endpoint"):
        parse_endpoint(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("mqlite://h?x=1", "unknown option 'x' in the endpoint; known are tls=true and tls=false"),
        ("mqlite://h?tls=true&x=1", "unknown option 'x' in the endpoint; known are tls="),
        ("mqlites://h/path?Tls=true", "unknown option 'Tls' in the endpoint; known are tls="),
        ("http://h?x=1", "unknown option 'x' in the endpoint; an http URL takes none"),
        ("https://h/a?tls=true", "unknown option 'tls' in the endpoint; an https URL takes none"),
        ("mqlite://h?tls=yes", "unknown option 'tls' in the endpoint; known are tls="),
        ("mqlite://h?tls", "unknown option in the endpoint; known are tls="),
        ("mqlite://h?abc", "unknown option in the endpoint; known are"),
        ("mqlite://h?x=1#f", "unknown option 'x'"),
        ("mqlite://h#f", "an endpoint has no fragment"),
        ("http://h#f", "an endpoint has no fragment"),
    ],
)
def test_nothing_in_an_endpoint_is_dropped_silently(text: str, complaint: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{complaint}"):
        parse_endpoint(text)


@pytest.mark.parametrize(
    "text", ["mqlite://secret@h:port", "secret://secret@h", "http://secret:secret@"]
)
def test_an_error_does_not_repeat_the_credential(text: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_endpoint(text)
    assert "secret@" not in str(caught.value)


@pytest.mark.parametrize("text", ["mqk_" + "0" * 64, "ftp://mqk_secret", "mqk_secret:6754"])
def test_an_error_does_not_repeat_a_token_in_the_place_of_the_endpoint(text: str) -> None:
    with pytest.raises(InvalidArgument, match="invalid endpoint") as caught:
        parse_endpoint(text)
    assert "mqk_" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "mqlite://h?c2VjcmV0LXRva2VuLTEyMzQ1Ng==",
        "mqlite://h?c2VjcmV0==",
        "http://h?mqk_" + "0" * 64 + "=1",
        "http://h?mqk_abcdef=1",
        "http://h?tok-en=1",
    ],
)
def test_the_name_of_an_option_is_not_shown_where_it_may_be_secret(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^unknown option in the endpoint; "):
        parse_endpoint(text)


def test_a_parsed_endpoint_does_not_show_its_token() -> None:
    assert "secret" not in repr(parse_endpoint("mqlite://secret@h"))
    assert "secret" not in repr(parse_endpoint("http://user:secret@h"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://h:6754", "http://h:6754/"),
        ("mqlite://h", "http://h:6754"),
        ("mqlite://tok@h", "mqlite://h"),
        ("mqlite://one@h", "mqlite://other@h:6754"),
        ("mqlites://h", "https://h:6754"),
        ("mqlite://h?tls=true", "mqlites://h"),
    ],
)
def test_spellings_of_the_same_broker(one: str, other: str) -> None:
    assert same_endpoint(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://a", "http://b"),
        ("http://h", "http://H"),
        ("http://h:1", "http://h:2"),
        ("http://h", "https://h"),
        ("http://h/a", "http://h/b"),
        ("http://h/a%2Fb", "http://h/a/b"),
        ("http://h?x=1", "http://h?x=1"),
        ("http://h#a", "http://h#b"),
        ("http://[fe80::1%25eth0]", "http://[fe80::1%25eth1]"),
        ("nonsense", "nonsense"),
    ],
)
def test_different_brokers(one: str, other: str) -> None:
    assert not same_endpoint(one, other)


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("mqlite://tok@h:1/p?q", "mqlite://h:1/p?q"),
        ("https://user:pass@h", "https://h"),
        ("http://h/@x", "http://h/@x"),
        ("nonsense", "nonsense"),
    ],
)
def test_taking_the_credentials_out(text: str, stripped: str) -> None:
    assert without_credentials(text) == stripped


@pytest.mark.parametrize(
    "text",
    [
        "mqlite://a/secret@h",
        "mqlite://a?secret@h",
        "mqlite://a#secret@h",
        "secret@h",
        "mqlite:secret@h",
        "ftp://h?token=secret",
        "http://h?token=secret",
        "mqlite://h?token=secret",
        "mqlite://h?secret",
        "mqlite://h?secret=",
        "mqlite://h?tls=secret",
        "http://a?secret=x@h",
        "http://a?secret=x&b=1@h",
        "http://a?secret=x#@h",
        "http://h#secret",
    ],
)
def test_an_endpoint_that_is_refused_is_not_shown_with_what_may_be_secret(text: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        mqlite.connect(text)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("host", ["a" * 64, "h..example", f"h.{'a' * 64}.example"])
def test_a_host_no_name_server_can_be_asked_for_is_refused(host: str) -> None:
    with pytest.raises(InvalidArgument, match="bad host or port"):
        mqlite.connect(f"http://{host}")


@pytest.mark.parametrize(
    ("endpoint", "token", "complaint"),
    [
        (None, "", "endpoint must be text, got NoneType"),
        (b"http://h", "", "endpoint must be text, got bytes"),
        ("http://h", b"secret", "token must be text, got bytes"),
    ],
)
def test_what_is_no_text_is_refused(endpoint: Any, token: Any, complaint: str) -> None:
    with pytest.raises(InvalidArgument, match=complaint):
        mqlite.connect(endpoint, token=token)


@pytest.mark.parametrize("token", ["a b", " a", "a ", "a\tb", "a\n", "\x7f", "k\xe9y", "\ud800"])
def test_a_token_that_no_header_can_carry_is_refused(token: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^token\b") as caught:
        mqlite.connect("http://h", token=token)
    assert repr(token) not in str(caught.value)
    with mqlite.open(":memory:") as mq, pytest.raises(InvalidArgument, match=r"^tokens\b"):
        mqlite.asgi(mq, tokens=["good", f"a{token}b"])


def test_the_token_of_an_endpoint_is_held_to_the_same() -> None:
    with pytest.raises(InvalidArgument, match=r"^token: a token is printable"):
        mqlite.connect("mqlite://a%20b@h")

"""Endpoint strings: how a broker is named on a command line or in an environment."""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from mqlite.errors import InvalidArgument

DEFAULT_PORT: Final = 6754

_PLAIN: Final = ("http", "https")
_OURS: Final = {"mqlite": "http", "mqlites": "https"}
_TLS: Final = ("tls=true", "tls=false")
_TOKEN: Final = re.compile(r"mqk_\w+")  # given in the place of an endpoint
_HARMLESS: Final = re.compile(r"(?!mqk_)[A-Za-z_]{1,16}")
_EXAMPLES: Final = "http://127.0.0.1:6754, https://mq.example.com or mqlite://token@host"


class Endpoint(NamedTuple):
    """A broker's base URL, and the token that was written into the string, if any.

    Two strings name the same broker exactly when their `base_url` is equal.
    """

    base_url: str
    token: str = ""

    def __repr__(self) -> str:
        return f"Endpoint({without_credentials(self.base_url)!r})"


def parse_endpoint(text: str) -> Endpoint:
    """Read `http(s)://...`, `mqlite://[token@]host[:port]` or `mqlites://...`.

    An http(s) URL keeps everything but trailing slashes. The others carry a token, default
    to port 6754, and take `?tls=true` or `?tls=false`; their path is dropped. Raises
    InvalidArgument, without repeating a credential.
    """
    parts = _split(text)
    options = _options(parts)
    if parts.scheme in _PLAIN:
        return Endpoint(text.rstrip("/"))
    scheme = "https" if "tls=true" in options else _OURS[parts.scheme]
    userinfo, _, hostport = parts.netloc.rpartition("@")
    if parts.port is None:
        hostport = f"{hostport.removesuffix(':')}:{DEFAULT_PORT}"
    return Endpoint(f"{scheme}://{hostport}", unquote(userinfo.partition(":")[0]))


def without_credentials(text: str) -> str:
    """The same string without its user name, password or token."""
    head, separator, tail = text.partition("://")
    ends = [at for at in map(tail.find, "/?#") if at >= 0]
    authority = tail[: min(ends)] if ends else tail
    host = authority.rpartition("@")[2]
    if not separator:
        return text.rpartition("@")[2]
    return f"{head}{separator}{host}{tail[len(authority) :]}"


def same_endpoint(one: str, other: str) -> bool:
    """Whether both strings dial the same base URL; a string that cannot be read dials
    none."""
    try:
        return parse_endpoint(one).base_url == parse_endpoint(other).base_url
    except InvalidArgument:
        return False


def holds_token(text: str) -> bool:
    """Whether a token is written into the string; not into one that cannot be read."""
    try:
        return bool(parse_endpoint(text).token)
    except InvalidArgument:
        return False


def _split(text: str) -> SplitResult:
    shown = _TOKEN.sub("(a token)", re.split("[?#]", without_credentials(text))[0])
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise InvalidArgument(f"invalid endpoint {shown!r}: expected a URL such as {_EXAMPLES}")
    try:
        parts = urlsplit(text)
        _ = parts.port
        (parts.hostname or "").encode("idna")
    except ValueError:
        raise InvalidArgument(f"invalid endpoint {shown!r}: bad host or port") from None
    if parts.scheme not in _PLAIN and parts.scheme not in _OURS:
        raise InvalidArgument(f"invalid endpoint {shown!r}: expected a URL such as {_EXAMPLES}")
    if parts.scheme in _OURS and "@" in f"{parts.path}{parts.query}{parts.fragment}":
        raise InvalidArgument("invalid endpoint: a token with '/', '?' or '#' is percent-encoded")
    if not parts.hostname:
        raise InvalidArgument(f"invalid endpoint {shown!r}: the host is missing")
    return parts


def _options(parts: SplitResult) -> list[str]:
    """What stands in the query. Raises InvalidArgument for what it knows nothing of, naming that
    only where it cannot be a part of a secret."""
    options = parts.query.split("&") if parts.query else []
    ours = parts.scheme in _OURS
    known = "known are tls=true and tls=false" if ours else f"an {parts.scheme} URL takes none"
    for option in options:
        if not (ours and option in _TLS):
            name, _, value = option.partition("=")
            # No value, or one of "=" alone, ends what may be a secret of its own: base64 is padded.
            named = value.strip("=") and "@" not in f"{parts.query}{parts.fragment}"
            shown = f" {name!r}" if named and _HARMLESS.fullmatch(name) else ""
            raise InvalidArgument(f"unknown option{shown} in the endpoint; {known}")
    if parts.fragment:
        raise InvalidArgument("an endpoint has no fragment ('#...')")
    return options

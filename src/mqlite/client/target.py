"""Which broker a client talks to, with which credential, and how patiently."""

from __future__ import annotations

import ssl
from typing import Final, TypedDict
from urllib.parse import urlsplit

from mqlite import __version__, arguments
from mqlite.client.discipline import Patience
from mqlite.clock import Clock, SystemClock
from mqlite.durations import Duration, to_ms
from mqlite.endpoint import parse_endpoint, without_credentials
from mqlite.errors import InvalidArgument

IDLE_SECONDS: Final = 30.0
"""How long a connection may be idle and still be used. Brokers keep them for 120 s; what is
in between may forget them sooner, and does not say so."""


class Options(TypedDict, total=False):
    """Options of `connect` and `connect_async`, where they are described."""

    timeout: Duration
    connect_timeout: Duration
    retry_for: Duration
    ssl_context: ssl.SSLContext | None
    clock: Clock | None


_OPTIONS: Final = Options(timeout=30, connect_timeout=5, retry_for=10)


class Target:
    """An endpoint and options, checked. Raises InvalidArgument; never shows the token."""

    def __init__(self, endpoint: str, token: str, options: Options) -> None:
        arguments.check_known(options, Options, "option")
        read = parse_endpoint(arguments.text(endpoint, "endpoint"))
        self.base_url = without_credentials(read.base_url)
        if self.base_url != read.base_url:
            raise InvalidArgument("an http endpoint holds no user name; give the token apart")
        parts = urlsplit(self.base_url)
        self.address = parts.netloc
        self.secure = parts.scheme == "https"
        self.prefix = parts.path
        self.token = token or read.token
        self.headers = _headers(self.token)
        self.options = options
        self.clock = options.get("clock") or SystemClock()
        every = _OPTIONS | options
        self.patience = Patience(
            answer_ms=_positive(every["timeout"], "timeout"),
            repeat_ms=to_ms(every["retry_for"], "retry_for"),
            connect_ms=_positive(every["connect_timeout"], "connect_timeout"),
        )

    @property
    def connect_seconds(self) -> float:
        return self.patience.connect_ms / 1000

    def ssl_context(self) -> ssl.SSLContext:
        """The caller's, or one that verifies against the system's authorities."""
        return self.options.get("ssl_context") or ssl.create_default_context()

    def __repr__(self) -> str:
        return f"<Target {self.base_url!r}>"


def _headers(token: str) -> dict[str, str]:
    headers = {
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": f"mqlite-python/{__version__}",
    }
    if token:
        headers["Authorization"] = f"Bearer {arguments.bearer_token(token, 'token')}"
    return headers


def _positive(value: Duration, field: str) -> int:
    ms = to_ms(value, field)
    if not ms:
        raise InvalidArgument(f"{field} must be positive")
    return ms

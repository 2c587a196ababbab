"""URLs: those that clients dial and ask for, those that a broker is asked for, and its own."""

from __future__ import annotations

import re
from typing import Any, Final

from guarding.hooks import after, before, when_audited, when_imported
from guarding.reports import look

_REQUEST_LINE: Final = re.compile(rb"[A-Z]+ (.*) HTTP/1\.[01]\r\n")


def watch() -> None:
    when_imported("mqlite.client.target", lambda it: after(it.Target, "__init__", _dialled))
    when_imported("mqlite.client.connections", lambda it: before(it.Connections, "_request", _sent))
    when_imported("aiohttp.client", lambda it: before(it.ClientSession, "_request", _requested))
    when_imported(
        "mqlite.broker.connection",
        lambda it: before(it.Connection, "on_headers_complete", _received),
    )
    when_imported("mqlite.broker.app", lambda it: before(it.Broker, "_http", _called))
    when_imported("mqlite.broker.server", lambda it: after(it, "url_of", _named))
    when_audited("socket.getaddrinfo", _looked_up)
    when_audited("urllib.Request", _opened)
    when_audited("http.client.send", _written)


def _dialled(result: object, target: Any, *args: object) -> None:
    look("the URL of a broker", target.base_url)


def _sent(connections: Any, connection: object, attempt: Any) -> None:
    head = connections._head % (attempt.path.encode(), 0)
    look("a URL that is asked for", head.split(b"\r\n")[0])


def _requested(session: object, method: str, url: object, **kwargs: object) -> None:
    look("a URL that is asked for", str(url))


def _opened(url: object, *args: object) -> None:
    look("a URL that is asked for", str(url))


def _written(connection: object, data: object) -> None:
    line = _REQUEST_LINE.match(data) if isinstance(data, bytes) else None
    if line is not None:
        look("a URL that is asked for", line[1])


def _received(connection: Any) -> None:
    look("a URL that the broker is asked for", connection.url)


def _called(broker: object, scope: Any, *args: object) -> None:
    """As an application in somebody else's server, too."""
    look("a URL that the broker is asked for", scope.get("raw_path") or scope["path"])
    look("a URL that the broker is asked for", scope.get("query_string", b""))


def _named(url: str, *args: object) -> None:
    look("the URL of a broker", url)


def _looked_up(host: object, *args: object) -> None:
    look("a name that is looked up", host if isinstance(host, bytes) else str(host))

"""The ASGI 3 vocabulary the rooms of the broker share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

Scope = MutableMapping[str, Any]
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
Header = tuple[bytes, bytes]

RESPOND: Final = "mqlite.respond"
"""Where our own server leaves a `Respond` in the scope; others do not."""

Respond = Callable[[int, list[Header], bytes], bool]
"""Send a small answer in one write. False where it must go by events after all."""

BODY: Final = "mqlite.body"
"""Where our own server leaves a `Whole` in the scope; others do not."""

Whole = Callable[[], bytes | None]
"""The request body if all of it is here and it is small; None: receive it."""

JSON: Final[Header] = (b"content-type", b"application/json")
TEXT: Final[Header] = (b"content-type", b"text/plain; charset=utf-8")


def local_path(scope: Scope) -> str:
    """The path below the prefix the application is mounted under.

    Current servers leave the prefix in `path`, older ones took it off.
    """
    path: str = scope["path"]
    if not scope.get("root_path"):
        return path
    prefix = scope["root_path"].rstrip("/")
    if prefix and path.startswith(prefix) and path[len(prefix) : len(prefix) + 1] in ("", "/"):
        path = path[len(prefix) :]
    return path or "/"


def peer(scope: Scope) -> str:
    """The address that the request came from, without a port; empty where the server knows
    none. A version 4 address is one also on a socket for both."""
    client = scope.get("client")
    host: str = client[0] if client else ""
    return host.removeprefix("::ffff:") if "." in host else host


def header(scope: Scope, name: bytes) -> bytes | None:
    """The first header of this (lower-case) name."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return None

"""Cross-origin requests from browsers."""

from __future__ import annotations

import re
from typing import Final

from mqlite.broker.asgi import Event, Header, Send
from mqlite.errors import InvalidArgument

_PREFLIGHT: Final[tuple[Header, ...]] = (
    (b"access-control-allow-methods", b"GET, POST, OPTIONS"),
    (b"access-control-allow-headers", b"Authorization, Content-Type"),
    (b"access-control-max-age", b"86400"),
)


class Cors:
    """The allowed origin, verbatim, on every response; None leaves cross-origin requests
    to the browser's default, which refuses them."""

    __slots__ = ("headers", "on")

    def __init__(self, origin: str | None) -> None:
        """Raises InvalidArgument for an origin that cannot stand in a header."""
        self.on = origin is not None
        self.headers: tuple[Header, ...] = ()
        if origin is not None:
            if not isinstance(origin, str) or not re.fullmatch("[ -~]+", origin):
                raise InvalidArgument("the CORS origin must be printable ASCII text")
            self.headers = ((b"access-control-allow-origin", origin.encode("ascii")),)
            if origin != "*":
                self.headers += ((b"vary", b"Origin"),)

    async def preflight(self, send: Send) -> None:
        headers = [*_PREFLIGHT, *self.headers]
        start: Event = {"type": "http.response.start", "status": 204, "headers": headers}
        await send(start)
        await send({"type": "http.response.body", "body": b""})


def origin_setting(value: str | None, *, auth: bool) -> str | None:
    """The allowed origin that the documented setting asks for.

    `off` in any case is none; unset or blank means `*` while authentication is on and none
    while it is off; anything else is the origin.
    """
    text = (value or "").strip()
    if text.lower() == "off":
        return None
    return text or ("*" if auth else None)

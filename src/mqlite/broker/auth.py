"""Who may call: configured bearer tokens."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from mqlite.broker.asgi import Header
from mqlite.errors import InvalidArgument, Unauthenticated

Tokens = Sequence[str] | Literal["off"]

EXEMPT: Final = frozenset({"/", "/healthz"})
_SCHEME: Final = b"Bearer "


class Authenticator:
    """Checks the Authorization header against the configured tokens.

    Only digests are kept, so that no token can reach a log, an error or a repr; digests of
    equal length also keep the comparison from telling how long a token is.
    """

    __slots__ = ("_digests",)

    def __init__(self, tokens: Tokens) -> None:
        """Raises InvalidArgument unless `tokens` is "off" or names at least one token."""
        self._digests = () if tokens == "off" else tuple(map(_digest, _cleaned(tokens)))

    @property
    def on(self) -> bool:
        return bool(self._digests)

    def check(self, path: str, headers: Iterable[Header]) -> None:
        """Raises Unauthenticated unless the request may go on.

        The scheme is matched exactly, `Bearer` and one space, and a second Authorization
        header is refused whatever it says.
        """
        if not self._digests or path in EXEMPT:
            return
        given = b""
        for name, value in headers:
            if name == b"authorization":
                if given:
                    raise Unauthenticated("a second Authorization header")
                given = value.rstrip(b" \t") or b" "
        if not given.startswith(_SCHEME):
            raise Unauthenticated("an 'Authorization: Bearer <token>' header is required")
        digest = hashlib.sha256(given[len(_SCHEME) :]).digest()
        known = False
        for candidate in self._digests:
            known |= hmac.compare_digest(candidate, digest)
        if not known:
            raise Unauthenticated("the bearer token is not valid")


def _cleaned(tokens: Sequence[str]) -> list[str]:
    if isinstance(tokens, str):
        raise InvalidArgument("tokens must be a list of tokens, or 'off'")
    cleaned = [token.strip() for token in tokens if token.strip()]
    if not cleaned:
        raise InvalidArgument("tokens is empty; pass 'off' to serve without authentication")
    return cleaned


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()

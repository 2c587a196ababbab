"""Who may call: configured bearer tokens, and what may be the token of an access key."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from mqlite.arguments import bearer_token
from mqlite.broker.asgi import Header
from mqlite.broker.rights import ADMINISTRATOR, ANYBODY, MONITOR, Rights
from mqlite.errors import InvalidArgument, Unauthenticated
from mqlite.observation.vocabulary import AuthenticationOutcome

Tokens = Sequence[str] | Literal["off"]

EXEMPT: Final = frozenset({"/", "/healthz"})
_SCHEME: Final = b"Bearer "
_OF_A_KEY: Final = re.compile(rb"mqk_[0-9a-f]{64}")


class Refused(Unauthenticated):
    """Nothing lets the request in. `outcome` is the word of the counters for why, and `key_id`
    says whose token it was, where that is known; the one who asks hears neither."""

    def __init__(self, message: str, outcome: AuthenticationOutcome, key_id: str = "") -> None:
        super().__init__(message)
        self.outcome = outcome
        self.key_id = key_id


class Authenticator:
    """Checks the Authorization header against the tokens of administrators and monitors.

    Only digests are kept, so that no token can reach a log, an error or a repr; digests of
    equal length also keep the comparison from telling how long a token is.
    """

    __slots__ = ("_administrators", "_monitors")

    def __init__(self, tokens: Tokens, monitor_tokens: Sequence[str] = ()) -> None:
        """Raises InvalidArgument unless `tokens` is "off" or names at least one token; for
        monitors where it is off, and for a token that is in both."""
        self._administrators = () if tokens == "off" else _digests(tokens, "tokens")
        self._monitors = _digests(monitor_tokens, "monitor_tokens")
        if not self._administrators and tokens != "off":
            raise InvalidArgument("tokens is empty; pass 'off' to serve without authentication")
        if self._monitors and tokens == "off":
            raise InvalidArgument("monitor_tokens needs authentication, which is off")
        if not set(self._monitors).isdisjoint(self._administrators):
            raise InvalidArgument("monitor_tokens and tokens must not share a token")

    @property
    def on(self) -> bool:
        return bool(self._administrators)

    def identify(self, path: str, headers: Iterable[Header]) -> Rights | bytes:
        """What the request may do; or the digest of its token, where only an access key can
        tell. Raises Refused where nothing lets it in.

        The scheme is matched exactly, `Bearer` and one space, and a second Authorization
        header is refused whatever it says.
        """
        if not self._administrators or path in EXEMPT:
            return ANYBODY
        given = b""
        for name, value in headers:
            if name == b"authorization":
                if given:
                    raise Refused("a second Authorization header", "invalid")
                given = value.rstrip(b" \t") or b" "
        if not given.startswith(_SCHEME):
            raise Refused(
                "an 'Authorization: Bearer <token>' header is required",
                "invalid" if given else "missing",
            )
        token = given[len(_SCHEME) :]
        digest = hashlib.sha256(token).digest()
        if _is_among(self._administrators, digest):
            return ADMINISTRATOR
        if _is_among(self._monitors, digest):
            return MONITOR
        if not _OF_A_KEY.fullmatch(token):
            raise Refused("the bearer token is not valid", "invalid")
        return digest


def _is_among(digests: tuple[bytes, ...], digest: bytes) -> bool:
    known = False
    for candidate in digests:
        known |= hmac.compare_digest(candidate, digest)
    return known


def _digests(tokens: Sequence[str], field: str) -> tuple[bytes, ...]:
    if not isinstance(tokens, list | tuple) or not all(isinstance(each, str) for each in tokens):
        raise InvalidArgument(f"{field} must be a list of texts")
    cleaned = [bearer_token(token.strip(), field) for token in tokens if token.strip()]
    if any(token.lower() == "off" for token in cleaned):
        raise InvalidArgument(
            f"{field}: 'off' is no token; pass tokens='off' itself to serve without authentication"
        )
    return tuple(hashlib.sha256(token.encode()).digest() for token in cleaned)

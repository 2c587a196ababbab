"""Access keys: what they are, and the operations on them.

A key lets a client of a broker send, listen or manage. Its secret is the *token*, which
exists in clear only in the answer of its creation; its *id* is public.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any, Final, Literal, Protocol, get_args

import msgspec

from mqlite.durations import When, to_epoch_ms
from mqlite.errors import InvalidArgument

Permission = Literal["send", "listen", "manage"]
KeySort = Literal["id_asc", "created_desc"]

PERMISSIONS: Final[tuple[Permission, ...]] = get_args(Permission)
KEY_SORTS: Final[tuple[KeySort, ...]] = get_args(KeySort)

MAX_KEY_NAME_BYTES: Final = 128
DEFAULT_KEY_PAGE: Final = 100
MAX_KEY_PAGE: Final = 1000


class AccessKey(msgspec.Struct, kw_only=True, frozen=True):
    """What is known of a key, without its secret. Zero `expires_at_ms`: it does not expire;
    zero `revoked_at_ms`: it is not revoked."""

    id: str
    name: str
    permissions: tuple[Permission, ...]
    created_at_ms: int
    expires_at_ms: int = 0
    revoked_at_ms: int = 0


class CreatedKey(msgspec.Struct, frozen=True):
    """A new key and its token, which nobody can ask for again: keep it safe."""

    key: AccessKey
    token: str

    def __repr__(self) -> str:
        """Never the token."""
        return f"<CreatedKey {self.key.id} token=(hidden)>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Nor here, where msgspec's own would show it."""
        return [("key", self.key)]


class KeyPage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of the list of keys. `next_after_id` asks for the rest; '' at the end."""

    keys: list[AccessKey]
    next_after_id: str = ""


def generate_key_id() -> str:
    """A new public id of a key: 128 random bits, as 32 lower-case hexadecimal characters."""
    return secrets.token_hex(16)


def generate_token() -> str:
    """A new secret: 256 random bits, as `mqk_` and 64 lower-case hexadecimal characters."""
    return f"mqk_{secrets.token_hex(32)}"


def expiry_ms(expires_at: When | None, now: int) -> int:
    """When a key expires (epoch ms), 0 for never. Raises InvalidArgument."""
    if expires_at is None:
        return 0
    expiry = to_epoch_ms(expires_at, "expires_at", now)
    if expiry <= 0:  # which would mean never
        raise InvalidArgument("expires_at must be in the future; leave it out for no expiry")
    return expiry


def permission_list(permissions: Iterable[str]) -> list[str]:
    """What is asked for a key, once gone through; which there are is for the engine to say.
    Raises InvalidArgument."""
    if isinstance(permissions, str) or not isinstance(permissions, Iterable):
        raise InvalidArgument(f"permissions must be a list of {', '.join(PERMISSIONS)}")
    return [*permissions]


class KeyOperations(Protocol):
    """What a queue handle can do with access keys, for sync callers."""

    def create_key(
        self,
        id: str,
        *,
        name: str,
        permissions: Iterable[Permission],
        expires_at: When | None = None,
    ) -> CreatedKey:
        """Create a key under a public id that `generate_key_id` made and the caller has kept:
        should the answer be lost, the id tells whether there is a key to be revoked.

        The token in the answer cannot be had again. `manage` includes the other permissions.
        Raises KeyConflict where the id is taken."""

    def list_keys(
        self, *, after_id: str = "", limit: int = DEFAULT_KEY_PAGE, sort: KeySort = "id_asc"
    ) -> KeyPage:
        """Up to 1000 keys, with those that are expired or revoked; never a secret.

        Ascending by id, or the newest first (`created_desc`). `after_id` is the
        `next_after_id` of the page before, under the same `sort`; newest first it must be the
        id of a key. Raises InvalidArgument."""

    def revoke_key(self, id: str) -> None:
        """Let the key in no more, from the next request on; for good. Revoking it again
        changes nothing. Raises NotFound."""


class AsyncKeyOperations(Protocol):
    """The operations of `KeyOperations`, awaited."""

    async def create_key(
        self,
        id: str,
        *,
        name: str,
        permissions: Iterable[Permission],
        expires_at: When | None = None,
    ) -> CreatedKey: ...

    async def list_keys(
        self, *, after_id: str = "", limit: int = DEFAULT_KEY_PAGE, sort: KeySort = "id_asc"
    ) -> KeyPage: ...

    async def revoke_key(self, id: str) -> None: ...

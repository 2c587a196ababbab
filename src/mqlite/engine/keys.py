"""Access keys: create, list, revoke, and what a presented token may do."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final, Literal

from mqlite.durations import MAX_MS
from mqlite.engine.steps import NOW, Last, Row, Statement, Steps, operation
from mqlite.errors import InvalidArgument, KeyConflict, NotFound
from mqlite.keys import (
    DEFAULT_KEY_PAGE,
    KEY_SORTS,
    MAX_KEY_NAME_BYTES,
    MAX_KEY_PAGE,
    PERMISSIONS,
    AccessKey,
    CreatedKey,
    KeyPage,
    Permission,
    generate_token,
)

Permissions = tuple[Permission, ...]
RefusalReason = Literal["invalid", "revoked", "expired"]
"""Why a token lets nobody in."""

Presented = tuple[str, Permissions | RefusalReason]
"""What a token stands for: the id of its key, empty where there is none, and what the key
allows, or why it lets nobody in."""

_COLUMNS: Final = "id, name, permissions, created_at, expires_at, revoked_at"

SELECT_PRESENTED: Final = (
    "SELECT id, permissions, expires_at, revoked_at FROM mqlite_keys WHERE digest = ?"
)
INSERT_KEY: Final = """
    INSERT INTO mqlite_keys (digest, id, name, permissions, created_at, expires_at)
    VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id
"""
SELECT_KEYS_BY_ID: Final = f"SELECT {_COLUMNS} FROM mqlite_keys WHERE id > ? ORDER BY id LIMIT ?"
SELECT_NEWEST_KEYS: Final = (
    f"SELECT {_COLUMNS} FROM mqlite_keys ORDER BY created_at DESC, id DESC LIMIT ?"
)
SELECT_OLDER_KEYS: Final = f"""
    SELECT {_COLUMNS} FROM mqlite_keys
     WHERE (created_at, id) < (?, ?) ORDER BY created_at DESC, id DESC LIMIT ?
"""
SELECT_KEY_TIMES: Final = "SELECT created_at, revoked_at FROM mqlite_keys WHERE id = ?"
SET_REVOKED: Final = "UPDATE mqlite_keys SET revoked_at = ? WHERE id = ?"

_ID: Final = re.compile(r"[0-9a-f]{32}")


def digest_of(token: bytes) -> bytes:
    """What is stored of a token."""
    return hashlib.sha256(token).digest()


@operation()
def create(id_: str, name: str, permissions: Sequence[str], expires_at: int) -> Steps[CreatedKey]:
    """Create a key with a new token. `expires_at`: epoch ms, 0 for never.

    Raises InvalidArgument, KeyConflict.
    """
    check_id(id_)
    _check_name(name)
    granted = _normal(permissions)
    now: int = yield NOW
    if not (expires_at == 0 or now < expires_at <= MAX_MS):
        hint = "; it counts milliseconds, not seconds" if now < expires_at * 1000 <= MAX_MS else ""
        raise InvalidArgument(f"expires_at_ms must be in the future, or 0 for no expiry{hint}")
    token = generate_token()
    row = (digest_of(token.encode()), id_, name, ",".join(granted), now, expires_at)
    if not (yield Last(Statement(INSERT_KEY, row))):
        raise KeyConflict(f"a key with the id {id_} exists; its token cannot be shown again")
    key = AccessKey(
        id=id_, name=name, permissions=granted, created_at_ms=now, expires_at_ms=expires_at
    )
    return CreatedKey(key, token)


@operation(reads=True)
def list_page(after_id: str, limit: int, sort: str) -> Steps[KeyPage]:
    """A page of keys; the default limit for 0. Raises InvalidArgument."""
    if after_id:
        check_id(after_id, "after_id")
    limit = limit or DEFAULT_KEY_PAGE
    if not 1 <= limit <= MAX_KEY_PAGE:
        raise InvalidArgument(f"limit must be 1 to {MAX_KEY_PAGE}, got {limit}")
    sort = sort or "id_asc"
    if sort not in KEY_SORTS:
        raise InvalidArgument(f"sort must be one of {', '.join(KEY_SORTS)}; got {sort!r}")
    if sort == "id_asc":
        rows = yield Statement(SELECT_KEYS_BY_ID, (after_id, limit + 1))
    elif after_id:
        rows = yield from _older_than(after_id, limit + 1)
    else:
        rows = yield Statement(SELECT_NEWEST_KEYS, (limit + 1,))
    keys = [_key(row) for row in rows[:limit]]
    return KeyPage(keys, keys[-1].id if len(rows) > limit else "")


def _older_than(id_: str, limit: int) -> Steps[list[Row]]:
    times = yield Statement(SELECT_KEY_TIMES, (id_,))
    if not times:
        raise InvalidArgument("after_id must be the id of a key when sort is created_desc")
    rows: list[Row] = yield Statement(SELECT_OLDER_KEYS, (times[0][0], id_, limit))
    return rows


@operation(settles=True)
def revoke(id_: str) -> Steps[None]:
    """Revoke the key, if it is not. Raises InvalidArgument, NotFound."""
    check_id(id_)
    times = yield Statement(SELECT_KEY_TIMES, (id_,))
    if not times:
        raise NotFound(f"key {id_} does not exist")
    if not times[0][1]:
        now: int = yield NOW
        yield Last(Statement(SET_REVOKED, (max(now, 1), id_)))  # 0 would mean that it is not


@operation(reads=True, settles=True)
def look_up(digests: Sequence[bytes]) -> Steps[list[Presented]]:
    """What each token stands for, by its digest. At the time of its expiry a key is expired."""
    found = yield tuple(Statement(SELECT_PRESENTED, (digest,)) for digest in digests)
    now: int = yield NOW
    return [_granted(rows, now) for rows in found]


def _granted(rows: list[Row], now: int) -> Presented:
    if not rows:
        return "", "invalid"
    [(id_, permissions, expires_at, revoked_at)] = rows
    if revoked_at:
        return id_, "revoked"
    if expires_at and expires_at <= now:
        return id_, "expired"
    return id_, _read(permissions)


def check_id(value: str, field: str = "id") -> None:
    """Raises InvalidArgument naming `field`."""
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise InvalidArgument(f"{field} must be 32 lower-case hexadecimal characters")


def _check_name(name: str) -> None:
    if not isinstance(name, str):
        raise InvalidArgument(f"name must be text, got {type(name).__name__}")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise InvalidArgument("name must be valid Unicode text") from None
    if not 1 <= size <= MAX_KEY_NAME_BYTES:
        raise InvalidArgument(f"name must be 1 to {MAX_KEY_NAME_BYTES} bytes of UTF-8")
    if name != name.strip() or "\0" in name:
        raise InvalidArgument("name must not begin or end with white space, or contain NUL")


def _normal(permissions: Sequence[str]) -> Permissions:
    """Each permission once, in the documented order; `manage` alone, as it includes the
    others."""
    if unknown := [name for name in permissions if name not in PERMISSIONS]:
        raise InvalidArgument(
            f"permissions must be of {', '.join(PERMISSIONS)}; got {unknown[0]!r}"
        )
    if not permissions:
        raise InvalidArgument(f"permissions must name one of {', '.join(PERMISSIONS)}")
    if "manage" in permissions:
        return ("manage",)
    return tuple(name for name in PERMISSIONS if name in permissions)


def _read(permissions: str) -> Permissions:
    """As `_normal` made them. The table holds nothing else."""
    return tuple(name for name in PERMISSIONS if name in permissions.split(","))


def _key(row: Row) -> AccessKey:
    id_, name, permissions, created_at, expires_at, revoked_at = row
    return AccessKey(
        id=id_,
        name=name,
        permissions=_read(permissions),
        created_at_ms=created_at,
        expires_at_ms=expires_at,
        revoked_at_ms=revoked_at,
    )

"""The operations on access keys as calls."""

from __future__ import annotations

from collections.abc import Iterable

from mqlite import arguments, wire
from mqlite.client import results
from mqlite.client.call import Call, Safety, call_to
from mqlite.durations import When
from mqlite.keys import MAX_KEY_PAGE, CreatedKey, KeyPage, expiry_ms, permission_list


def create_key(
    id: str, name: str, permissions: Iterable[str], expires_at: When | None, now: int
) -> Call[CreatedKey]:
    """Never repeated: the answer to a repeat would be a conflict, and the token lost."""
    request = wire.CreateKeyRequest(
        id=arguments.text(id, "id"),
        name=arguments.text(name, "name"),
        permissions=permission_list(permissions),
        expires_at_ms=expiry_ms(expires_at, now) or None,
    )
    return call_to("AuthService/CreateKey", request, CreatedKey, results.itself, Safety.ONCE)


def list_keys(after_id: str, limit: int, sort: str) -> Call[KeyPage]:
    request = wire.ListKeysRequest(
        after_id=arguments.text(after_id, "after_id") or None,
        limit=arguments.integer(limit, "limit", 1, MAX_KEY_PAGE),
        sort=arguments.text(sort, "sort") or None,
    )
    return call_to("AuthService/ListKeys", request, KeyPage, results.itself, Safety.READ)


def revoke_key(id: str) -> Call[None]:
    request = wire.RevokeKeyRequest(id=arguments.text(id, "id"))
    kind = wire.RevokeKeyResponse
    return call_to("AuthService/RevokeKey", request, kind, results.nothing, Safety.REPEATABLE)

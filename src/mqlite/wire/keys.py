"""What is asked of `AuthService`, and what it answers; keys travel as they are (`mqlite.keys`)."""

from __future__ import annotations

import msgspec

from mqlite.wire.requests import Int64, Request


class CreateKeyRequest(Request):
    id: str | None = None
    name: str | None = None
    permissions: list[str] | None = None
    expires_at_ms: Int64 | None = None


class ListKeysRequest(Request):
    after_id: str | None = None
    limit: Int64 | None = None
    sort: str | None = None


class RevokeKeyRequest(Request):
    id: str | None = None


class RevokeKeyResponse(msgspec.Struct):
    ok: bool = True

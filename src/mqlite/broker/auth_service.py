"""`mqlite.v1.AuthService`: access keys. Their secrets are in no record of the log."""

from __future__ import annotations

from mqlite import wire
from mqlite.broker.call import Call
from mqlite.engine import keys
from mqlite.keys import CreatedKey, KeyPage


async def create_key(call: Call, request: wire.CreateKeyRequest) -> CreatedKey:
    operation = keys.create(
        request.id or "",
        request.name or "",
        request.permissions or [],
        request.expires_at_ms or 0,
    )
    created = await call.broker.core.run_async(operation)
    call.notes = ("key", created.key.id)
    return created


async def list_keys(call: Call, request: wire.ListKeysRequest) -> KeyPage:
    operation = keys.list_page(request.after_id or "", request.limit or 0, request.sort or "")
    return await call.broker.core.run_async(operation)


async def revoke_key(call: Call, request: wire.RevokeKeyRequest) -> wire.RevokeKeyResponse:
    id_ = request.id or ""
    await call.broker.core.run_async(keys.revoke(id_))
    call.notes = ("key", id_)
    return wire.RevokeKeyResponse()

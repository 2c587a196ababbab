"""Every operation of the contract: its path, its request and its handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from mqlite import wire
from mqlite.broker import (
    admin_service as admin,
    auth_service as auth,
    queue_service as queue,
)
from mqlite.broker.call import Call
from mqlite.broker.rights import Right

RequestType = TypeVar("RequestType", bound=wire.Request)
Handler = Callable[[Call, Any], Awaitable[msgspec.Struct]]


class Route(NamedTuple):
    """`right` is what a caller must have. `decoder` is None where the request body is
    never read. `settles` may use the part of the budget that is kept for settlements; the
    answer of one that `reads` holds bodies."""

    path: str
    right: Right
    handler: Handler
    decoder: msgspec.json.Decoder[Any] | None
    settles: bool = False
    reads: bool = False


def _route(
    name: str,
    right: Right,
    request: type[RequestType],
    handler: Callable[[Call, RequestType], Awaitable[msgspec.Struct]],
    *,
    settles: bool = False,
    reads: bool = False,
) -> Route:
    decoder = msgspec.json.Decoder(request)
    return Route(f"/mqlite.v1.{name}", right, handler, decoder, settles, reads)


def _unread(
    name: str, right: Right, handler: Callable[[Call, None], Awaitable[msgspec.Struct]]
) -> Route:
    return Route(f"/mqlite.v1.{name}", right, handler, None)


_TABLE: Final = (
    _route("QueueService/Send", "send", wire.SendRequest, queue.send_messages),
    _route(
        "QueueService/Receive", "listen", wire.ReceiveRequest, queue.receive_messages, reads=True
    ),
    _route("QueueService/Complete", "listen", wire.SettleRequest, queue.complete, settles=True),
    _route(
        "QueueService/CompleteBatch",
        "listen",
        wire.BatchRequest,
        queue.complete_batch,
        settles=True,
    ),
    _route("QueueService/RenewBatch", "listen", wire.BatchRequest, queue.renew_batch, settles=True),
    _route("QueueService/Abandon", "listen", wire.SettleRequest, queue.abandon, settles=True),
    _route("QueueService/Reject", "listen", wire.SettleRequest, queue.reject, settles=True),
    _route("QueueService/Defer", "listen", wire.SettleRequest, queue.defer, settles=True),
    _route(
        "QueueService/ReceiveDeferred",
        "listen",
        wire.ReceiveDeferredRequest,
        queue.receive_deferred,
        reads=True,
    ),
    _route("QueueService/Renew", "listen", wire.SettleRequest, queue.renew, settles=True),
    _route("QueueService/Schedule", "send", wire.SendRequest, queue.send_messages),
    _route("QueueService/Cancel", "send", wire.CancelRequest, queue.cancel),
    _route("QueueService/Peek", "listen", wire.PeekRequest, queue.peek, reads=True),
    _route("QueueService/Stats", "listen", wire.StatsRequest, queue.stats),
    _route("AdminService/CreateQueue", "manage", wire.CreateQueueRequest, admin.create_queue),
    _route("AdminService/Subscribe", "manage", wire.SubscribeRequest, admin.subscribe),
    _unread("AdminService/ListQueues", "manage", admin.list_queues),
    _unread("AdminService/ListSubscriptions", "manage", admin.list_subscriptions),
    _route("AdminService/TestFilter", "manage", wire.TestFilterRequest, admin.test_filter),
    _route("AdminService/Redrive", "manage", wire.RedriveRequest, admin.redrive),
    _route("AdminService/Purge", "manage", wire.PurgeRequest, admin.purge),
    _unread("AdminService/Status", "manage", admin.status),
    _route("AdminService/DeleteQueue", "manage", wire.DeleteQueueRequest, admin.delete_queue),
    _route("AdminService/Unsubscribe", "manage", wire.UnsubscribeRequest, admin.unsubscribe),
    _route("AdminService/PauseQueue", "manage", wire.PauseRequest, admin.pause_queue),
    _route("AdminService/ResumeQueue", "manage", wire.PauseRequest, admin.resume_queue),
    _route("QueueService/Release", "listen", wire.SettleRequest, queue.release, settles=True),
    _unread("AdminService/Observe", "observe", admin.observe),
    _route("AuthService/CreateKey", "keys", wire.CreateKeyRequest, auth.create_key),
    _route("AuthService/ListKeys", "keys", wire.ListKeysRequest, auth.list_keys),
    _route("AuthService/RevokeKey", "keys", wire.RevokeKeyRequest, auth.revoke_key),
)

ROUTES: Final = {route.path: route for route in _TABLE}
"""By path, in the order the discovery card lists them: upstream's, then the newer ones."""

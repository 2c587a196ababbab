"""Every operation of the contract: its path, its request and its handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from mqlite import wire
from mqlite.broker import admin_service as admin, queue_service as queue
from mqlite.broker.call import Call

RequestType = TypeVar("RequestType", bound=wire.Request)
Handler = Callable[[Call, Any], Awaitable[msgspec.Struct]]


class Route(NamedTuple):
    """`decoder` is None where the request body is never read. `settles` may use the part
    of the budget that is kept for settlements; the answer of one that `reads` holds bodies."""

    path: str
    handler: Handler
    decoder: msgspec.json.Decoder[Any] | None
    settles: bool = False
    reads: bool = False


def _route(
    name: str,
    request: type[RequestType],
    handler: Callable[[Call, RequestType], Awaitable[msgspec.Struct]],
    *,
    settles: bool = False,
    reads: bool = False,
) -> Route:
    return Route(f"/mqlite.v1.{name}", handler, msgspec.json.Decoder(request), settles, reads)


def _unread(name: str, handler: Callable[[Call, None], Awaitable[msgspec.Struct]]) -> Route:
    return Route(f"/mqlite.v1.{name}", handler, None)


_TABLE: Final = (
    _route("QueueService/Send", wire.SendRequest, queue.send_messages),
    _route("QueueService/Receive", wire.ReceiveRequest, queue.receive_messages, reads=True),
    _route("QueueService/Complete", wire.SettleRequest, queue.complete, settles=True),
    _route("QueueService/CompleteBatch", wire.BatchRequest, queue.complete_batch, settles=True),
    _route("QueueService/RenewBatch", wire.BatchRequest, queue.renew_batch, settles=True),
    _route("QueueService/Abandon", wire.SettleRequest, queue.abandon, settles=True),
    _route("QueueService/Reject", wire.SettleRequest, queue.reject, settles=True),
    _route("QueueService/Defer", wire.SettleRequest, queue.defer, settles=True),
    _route(
        "QueueService/ReceiveDeferred",
        wire.ReceiveDeferredRequest,
        queue.receive_deferred,
        reads=True,
    ),
    _route("QueueService/Renew", wire.SettleRequest, queue.renew, settles=True),
    _route("QueueService/Schedule", wire.SendRequest, queue.send_messages),
    _route("QueueService/Cancel", wire.CancelRequest, queue.cancel),
    _route("QueueService/Peek", wire.PeekRequest, queue.peek, reads=True),
    _route("QueueService/Stats", wire.StatsRequest, queue.stats),
    _route("AdminService/CreateQueue", wire.CreateQueueRequest, admin.create_queue),
    _route("AdminService/Subscribe", wire.SubscribeRequest, admin.subscribe),
    _unread("AdminService/ListQueues", admin.list_queues),
    _unread("AdminService/ListSubscriptions", admin.list_subscriptions),
    _route("AdminService/TestFilter", wire.TestFilterRequest, admin.test_filter),
    _route("AdminService/Redrive", wire.RedriveRequest, admin.redrive),
    _route("AdminService/Purge", wire.PurgeRequest, admin.purge),
    _unread("AdminService/Status", admin.status),
    _route("AdminService/DeleteQueue", wire.DeleteQueueRequest, admin.delete_queue),
    _route("AdminService/Unsubscribe", wire.UnsubscribeRequest, admin.unsubscribe),
    _route("AdminService/PauseQueue", wire.PauseRequest, admin.pause_queue),
    _route("AdminService/ResumeQueue", wire.PauseRequest, admin.resume_queue),
)

ROUTES: Final = {route.path: route for route in _TABLE}
"""By path, in the order the discovery card lists them: upstream's, then the newer ones."""

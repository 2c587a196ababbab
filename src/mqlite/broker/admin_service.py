"""`mqlite.v1.AdminService`: queues, subscriptions, dead letters and status."""

from __future__ import annotations

import asyncio
from typing import Any

from mqlite import __version__, wire
from mqlite.broker.call import Call
from mqlite.engine import deadletters, queues, topics
from mqlite.model import FilterTest, QueueConfig
from mqlite.observation.schema import Observation


async def create_queue(call: Call, request: wire.CreateQueueRequest) -> wire.EmptyResponse:
    name = request.name or ""
    call.notes = ("queue", name)
    config = request.config or wire.ConfigFields()
    operation = queues.create_queue(name, config.kind or "queue", _settings(config))
    await call.broker.core.run_async(operation)
    return wire.EmptyResponse()


def _settings(config: wire.ConfigFields) -> dict[str, Any]:
    """The settings the request names; what is left out is for the engine to decide."""
    named = {field: getattr(config, field) for field in QueueConfig.__struct_fields__}
    return {field: value for field, value in named.items() if value is not None}


async def delete_queue(call: Call, request: wire.DeleteQueueRequest) -> wire.DeletedResponse:
    name = request.name or ""
    call.notes = ("queue", name)
    operation = queues.delete_queue(name, request.generation or "")
    await call.broker.core.run_async(operation)
    return wire.DeletedResponse()


async def pause_queue(call: Call, request: wire.PauseRequest) -> wire.EmptyResponse:
    return await _set_paused(call, request.name or "", True)


async def resume_queue(call: Call, request: wire.PauseRequest) -> wire.EmptyResponse:
    return await _set_paused(call, request.name or "", False)


async def _set_paused(call: Call, name: str, paused: bool) -> wire.EmptyResponse:
    call.notes = ("queue", name)
    await call.broker.core.run_async(queues.set_paused(name, paused))
    return wire.EmptyResponse()


async def list_queues(call: Call, request: None) -> wire.ListQueuesResponse:
    found = await call.broker.core.run_async(queues.list_queues())
    return wire.ListQueuesResponse([wire.QueueEntry.of(info) for info in found])


async def subscribe(call: Call, request: wire.SubscribeRequest) -> wire.EmptyResponse:
    topic, name = request.topic or "", request.name or ""
    call.notes = ("topic", topic, "sub", name)
    expr = (request.filter.expr if request.filter else None) or ""
    await call.broker.core.subscribe_async(topic, name, expr)
    return wire.EmptyResponse()


async def unsubscribe(call: Call, request: wire.UnsubscribeRequest) -> wire.DeletedResponse:
    topic, name = request.topic or "", request.name or ""
    call.notes = ("topic", topic, "sub", name)
    operation = topics.unsubscribe(topic, name, request.generation or "")
    await call.broker.core.run_async(operation)
    return wire.DeletedResponse()


async def list_subscriptions(call: Call, request: None) -> wire.ListSubscriptionsResponse:
    found = await call.broker.core.run_async(topics.list_subscriptions())
    return wire.ListSubscriptionsResponse(found)


async def test_filter(call: Call, request: wire.TestFilterRequest) -> FilterTest:
    core = call.broker.core
    sample = request.message or wire.WireMessage()
    message = wire.out_message(sample, core.max_message_bytes) if request.message else None
    times = sample.enqueued_at_ms or 0, sample.visible_at_ms or 0
    return await asyncio.to_thread(core.calls.filter_test(request.expr or "", message, *times))


async def redrive(call: Call, request: wire.RedriveRequest) -> wire.RedriveResponse:
    queue = request.queue or ""
    call.notes = ("queue", queue, "n", 0)
    plan = deadletters.redrive(
        queue,
        target=request.target or "",
        limit=request.max or 0,
        older_than_ms=request.older_than_ms or 0,
        rate=request.rate_per_sec or 0,
    )
    result = await call.broker.core.drive_async(plan, wire.MOVE_MS)
    call.notes = ("queue", queue, "n", result.count)
    return wire.RedriveResponse(result.count, result.complete)


async def purge(call: Call, request: wire.PurgeRequest) -> wire.PurgeResponse:
    queue = request.queue or ""
    call.notes = ("queue", queue, "n", 0)
    plan = deadletters.purge(
        queue, limit=request.max or 0, older_than_ms=request.older_than_ms or 0
    )
    result = await call.broker.core.drive_async(plan, wire.MOVE_MS)
    call.notes = ("queue", queue, "n", result.count)
    return wire.PurgeResponse(result.count, result.complete)


async def observe(call: Call, request: None) -> Observation:
    return await call.broker.monitoring.observe(call.rights)


async def status(call: Call, request: None) -> wire.StatusResponse:
    broker = call.broker
    return wire.StatusResponse.of(
        await broker.core.status_async(),
        version=__version__,
        uptime_ms=broker.uptime_ms,
        auth=broker.auth.on,
    )

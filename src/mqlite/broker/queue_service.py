"""`mqlite.v1.QueueService`: sending, receiving and settling.

Handlers put the contract's clamps between the wire and the engine, and nothing else: what
is refused is refused by the engine, for every way in alike.
"""

from __future__ import annotations

from collections.abc import Awaitable

from mqlite import wire
from mqlite.broker.call import Call
from mqlite.engine import browse, receive, send, settle, settle_batch
from mqlite.engine.send import Sent
from mqlite.errors import Closed, DedupConflict, InvalidArgument
from mqlite.model import (
    MAX_BATCH,
    MAX_PEEK,
    MAX_WAIT_MS,
    Lease,
    MessageData,
    OutMessage,
    QueueStats,
    RenewResult,
)

_RECEIVE_AND_DELETE = 1
_DEFAULT_PEEK = 32


def outgoing(call: Call, request: wire.SendRequest) -> tuple[str, list[OutMessage], int, int]:
    """What to send: the queue, the messages, when (epoch ms, 0: now), and the TTL."""
    queue = request.queue or ""
    at = request.scheduled_enqueue_time_ms or 0
    if at < 0:
        raise InvalidArgument("scheduled_enqueue_time_ms must not be negative")
    messages = wire.out_messages(request.messages or (), call.broker.core.max_message_bytes)
    call.notes = ("queue", queue, "n", len(messages))
    if len(messages) == 1 and messages[0].message_id:
        call.notes += ("msg_id", messages[0].message_id)
    return queue, messages, at, max(request.ttl_ms or 0, 0)


async def send_messages(call: Call, request: wire.SendRequest) -> wire.SendResponse:
    sending = call.broker.core.send_async(*outgoing(call, request))
    if request.results:
        return await _sent_by_slot(sending)
    return wire.SendResponse(await sending)


async def _sent_by_slot(sending: Awaitable[Sent]) -> wire.SendResponse:
    """The answer in which a dedup conflict concerns its message only, also a message alone."""
    try:
        sent = await sending
    except DedupConflict as problem:
        sent = Sent([0])
        sent.conflicts = {0: problem}
    results = [wire.SlotResult(seq) for seq in sent]
    for index, conflict in sent.conflicts.items():
        error = wire.ErrorBody.of(conflict)
        results[index] = wire.SlotResult(code=error.code, message=error.message)
    return wire.SendResponse(sent, results)


async def receive_messages(call: Call, request: wire.ReceiveRequest) -> wire.ReceiveResponse:
    queue = request.queue or ""
    wait_ms = min(max(request.wait_time_ms or 0, 0), MAX_WAIT_MS)
    core = call.broker.core
    began = core.clock.elapsed()
    call.notes = ("queue", queue, "msgs", 0)
    poll = core.receive_async(
        queue,
        min(max(request.max_messages or 1, 1), MAX_BATCH),
        wait_ms,
        "receive_and_delete" if request.receive_mode == _RECEIVE_AND_DELETE else "peek_lock",
        request.receive_attempt_id or "",
    )
    messages: list[MessageData] | None
    if not wait_ms:
        messages = await poll
    else:
        try:
            messages = await call.broker.polls.run(poll, call.receive)
        except Closed:  # it was admitted and has waited: to its client the wait is over
            messages = None
    call.quiet = not messages
    waited_ms = core.clock.elapsed() - began if messages and wait_ms else 0
    return wire.ReceiveResponse(_received(call, queue, messages or []), waited_ms)


async def receive_deferred(
    call: Call, request: wire.ReceiveDeferredRequest
) -> wire.MessagesResponse:
    queue = request.queue or ""
    call.notes = ("queue", queue, "msgs", 0)
    operation = receive.receive_deferred(queue, request.seq_numbers or [])
    claimed = await call.broker.core.run_async(operation)
    return wire.MessagesResponse(_received(call, queue, claimed), claimed.truncated)


def _received(call: Call, queue: str, messages: list[MessageData]) -> list[MessageData]:
    """The messages, with what remains of each lease as the answer is written."""
    call.notes = ("queue", queue, "msgs", len(messages))
    if messages:
        now = call.broker.core.clock.now()
        for message in messages:
            message.lease_ms = max(message.locked_until_ms - now, 0)
    return messages


async def complete(call: Call, request: wire.SettleRequest) -> wire.SettleResponse:
    await call.broker.core.run_async(settle.complete(*_lease(call, request)))
    return wire.SettleResponse()


async def abandon(call: Call, request: wire.SettleRequest) -> wire.SettleResponse:
    lease = _lease(call, request)
    operation = settle.abandon(*lease, request.delay_ms or 0, bool(request.snooze))
    await call.broker.core.run_async(operation)
    return wire.SettleResponse()


async def release(call: Call, request: wire.SettleRequest) -> wire.SettleResponse:
    await call.broker.core.run_async(settle.release(*_lease(call, request)))
    return wire.SettleResponse()


async def reject(call: Call, request: wire.SettleRequest) -> wire.SettleResponse:
    operation = settle.reject(
        *_lease(call, request),
        request.dead_letter_reason or "",
        request.dead_letter_description or "",
    )
    await call.broker.core.run_async(operation)
    return wire.SettleResponse()


async def defer(call: Call, request: wire.SettleRequest) -> wire.SettleResponse:
    await call.broker.core.run_async(settle.defer(*_lease(call, request)))
    return wire.SettleResponse()


async def renew(call: Call, request: wire.SettleRequest) -> wire.SettleResponse:
    await call.broker.core.run_async(settle.renew(*_lease(call, request)))
    return wire.SettleResponse()


def _lease(call: Call, request: wire.SettleRequest) -> tuple[str, int, str]:
    queue = request.queue or ""
    seq = request.seq_number or 0
    call.notes = ("queue", queue, "seq", seq)
    return queue, seq, request.lock_token or ""


async def complete_batch(call: Call, request: wire.BatchRequest) -> wire.CompleteBatchResponse:
    queue, leases = _leases(call, request)
    results = await call.broker.core.run_async(settle_batch.complete_batch(queue, leases))
    return wire.CompleteBatchResponse(results)


async def renew_batch(call: Call, request: wire.BatchRequest) -> wire.RenewBatchResponse:
    queue, leases = _leases(call, request)
    core = call.broker.core
    results = await core.run_async(settle_batch.renew_batch(queue, leases))
    now = core.clock.now()
    return wire.RenewBatchResponse(
        [
            RenewResult(
                result.seq_number,
                result.ok,
                result.locked_until_ms,
                max(result.locked_until_ms - now, 0),
            )
            for result in results
        ]
    )


def _leases(call: Call, request: wire.BatchRequest) -> tuple[str, list[Lease]]:
    queue = request.queue or ""
    leases = [(item.seq_number or 0, item.lock_token or "") for item in request.messages or ()]
    call.notes = ("queue", queue, "n", len(leases))
    return queue, leases


async def cancel(call: Call, request: wire.CancelRequest) -> wire.SettleResponse:
    queue = request.queue or ""
    seq = request.seq_number or 0
    call.notes = ("queue", queue, "seq", seq)
    await call.broker.core.run_async(send.cancel(queue, seq))
    return wire.SettleResponse()


async def peek(call: Call, request: wire.PeekRequest) -> wire.MessagesResponse:
    queue = request.queue or ""
    call.notes = ("queue", queue, "msgs", 0)
    limit = request.max or 0
    operation = browse.peek(
        queue,
        max(request.from_seq or 0, 0),
        request.state or "",
        min(limit, MAX_PEEK) if limit > 0 else _DEFAULT_PEEK,
    )
    messages = await call.broker.core.run_async(operation)
    call.notes = ("queue", queue, "msgs", len(messages))
    return wire.MessagesResponse(messages)


async def stats(call: Call, request: wire.StatsRequest) -> QueueStats:
    queue = request.queue or ""
    call.notes = ("queue", queue)
    return await call.broker.core.run_async(browse.stats(queue))

"""Dead letters: redrive and purge, in chunks that can be stopped between."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final, NamedTuple

from mqlite.durations import MAX_MS
from mqlite.engine import leaving, lines
from mqlite.engine.catalog import Queue, existing_queue
from mqlite.engine.lines import Place
from mqlite.engine.steps import (
    EXPIRY_DUE,
    NOW,
    Due,
    Event,
    Operation,
    Pause,
    Plan,
    Ready,
    Statement,
    Steps,
    operation,
)
from mqlite.errors import Canceled, InvalidArgument, MqliteError
from mqlite.model import MoveResult

CHUNK: Final = 500

SELECT_DEAD: Final = """
    SELECT seq, line, head, payload_id, enqueued_at, group_id FROM mqlite_messages
     WHERE queue_id = ? AND state = 'dead_lettered' AND seq > ? AND seq <= ?
     ORDER BY seq LIMIT ?
"""
SELECT_LAST_DEAD: Final = """
    SELECT seq FROM mqlite_messages
     WHERE queue_id = ? AND state = 'dead_lettered' ORDER BY seq DESC LIMIT 1
"""
REVIVE: Final = """
    UPDATE mqlite_messages
       SET state = 'active', line = CASE WHEN ? THEN '' ELSE group_id END,
           head = CASE WHEN ? THEN 0 ELSE group_id IS NULL END,
           visible_at = 0, sort_at = ?, delivery_count = 0, failure_count = 0,
           expires_at = CASE WHEN expires_at > 0 AND expires_at <= ? THEN ? + ttl_ms
                             ELSE expires_at END,
           dead_letter_reason = NULL, dead_letter_description = NULL
     WHERE seq IN (SELECT value FROM json_each(?)) AND state = 'dead_lettered'
    RETURNING head, expires_at
"""
COPY: Final = """
    INSERT INTO mqlite_messages (
        queue_id, state, head, line, priority, sort_at, visible_at, enqueued_at, ttl_ms, expires_at,
        group_id, message_id, correlation_id, reply_to, content_type, subject, body_size,
        payload_id, properties, body)
    SELECT ?, 'active', CASE WHEN ? THEN 0 ELSE group_id IS NULL END,
           CASE WHEN ? THEN '' ELSE group_id END, priority, ?, ?, ?, 0, 0,
           group_id, message_id, correlation_id, reply_to, content_type, subject, body_size,
           payload_id, properties, body
      FROM mqlite_messages
     WHERE seq IN (SELECT value FROM json_each(?)) AND state = 'dead_lettered'
     ORDER BY seq
"""
DELETE_BY_SEQ: Final = """
    DELETE FROM mqlite_messages WHERE seq IN (SELECT value FROM json_each(?))
"""


class Scope(NamedTuple):
    """Which dead letters a redrive or purge means: those present when it began, up to
    `last`, enqueued before `before`."""

    last: int
    before: int


class Chunk(NamedTuple):
    """What one transaction of a plan did: the number of messages, where the next one starts, and
    whether there is one."""

    number: int
    after: int
    more: bool


def redrive(
    queue_name: str, *, target: str = "", limit: int = 0, older_than_ms: int = 0, rate: int = 0
) -> Plan[MoveResult]:
    """Make dead letters active again, in place or in the queue `target`, oldest first.

    In place they keep sequence number and deadline (a deadline that has passed is set anew);
    in another queue they are new messages without one (source: mqlite). `rate` is messages
    a second; 0 means no bound. Raises InvalidArgument, NotFound.
    """
    _check_bounds(max=limit, older_than_ms=older_than_ms, rate_per_sec=rate)
    target = "" if target == queue_name else target

    def chunk(scope: Scope, after: int, count: int) -> Operation[Chunk]:
        return redrive_chunk(queue_name, target, scope, after, count)

    scope: Scope = yield survey(queue_name, target, older_than_ms)
    return (yield from _move(chunk, scope, limit, rate))


def purge(queue_name: str, *, limit: int = 0, older_than_ms: int = 0) -> Plan[MoveResult]:
    """Delete dead letters, oldest first; 0 means no bound. Raises InvalidArgument, NotFound."""
    _check_bounds(max=limit, older_than_ms=older_than_ms)

    def chunk(scope: Scope, after: int, count: int) -> Operation[Chunk]:
        return purge_chunk(queue_name, scope, after, count)

    scope: Scope = yield survey(queue_name, "", older_than_ms)
    return (yield from _move(chunk, scope, limit, 0))


def _check_bounds(**bounds: int) -> None:
    for name, value in bounds.items():
        if value < 0:
            raise InvalidArgument(f"{name} must not be negative, got {value}")


def _move(
    chunk: Callable[[Scope, int, int], Operation[Chunk]], scope: Scope, limit: int, rate: int
) -> Plan[MoveResult]:
    """Run chunk after chunk. Once something was moved, a failure or a stop ends the plan with
    what was done, so that the count is not lost."""
    moved, after, more = 0, 0, True
    try:
        while more and (not limit or moved < limit):
            size = min(rate or CHUNK, CHUNK, limit - moved if limit else CHUNK)
            done: Chunk = yield chunk(scope, after, size)
            moved, after, more = moved + done.number, done.after, done.more
            if rate and more:
                yield Pause(1000 * max(done.number, 1) // rate)
    except Canceled:
        return MoveResult(moved, complete=False)
    except MqliteError:
        if not moved:
            raise
        return MoveResult(moved, complete=False)
    return MoveResult(moved)


@operation()
def survey(queue_name: str, target: str, older_than_ms: int) -> Steps[Scope]:
    """Check the queues and note which dead letters are meant."""
    queue = yield from existing_queue(queue_name)
    if target:
        yield from existing_queue(target)
    now: int = yield NOW
    last = yield Statement(SELECT_LAST_DEAD, (queue.id,))
    return Scope(last[0][0] if last else 0, now - older_than_ms if older_than_ms else MAX_MS)


@operation()
def redrive_chunk(
    queue_name: str, target: str, scope: Scope, after: int, limit: int
) -> Steps[Chunk]:
    queue = yield from existing_queue(queue_name)
    selected = yield from _select(queue, scope, after, limit)
    if selected.places:
        if target:
            yield from _move_over((yield from existing_queue(target)), selected)
        else:
            yield from _revive(queue, selected)
        yield Event("redriven", queue.id, len(selected.places))
    return selected.chunk


@operation()
def purge_chunk(queue_name: str, scope: Scope, after: int, limit: int) -> Steps[Chunk]:
    queue = yield from existing_queue(queue_name)
    selected = yield from _select(queue, scope, after, limit)
    if selected.places:
        yield from leaving.remove(queue.id, selected.places)
        yield Event("purged", queue.id, len(selected.places))
    return selected.chunk


class Selected(NamedTuple):
    """The dead letters of a chunk, how many of them are grouped, and by which groups."""

    places: list[Place]
    grouped: int
    groups: set[str]
    chunk: Chunk


def _select(queue: Queue, scope: Scope, after: int, limit: int) -> Steps[Selected]:
    """The next dead letters in scope, and the groups they belong to."""
    found = yield Statement(SELECT_DEAD, (queue.id, after, scope.last, limit))
    meant = [row for row in found if row[4] < scope.before]
    last = found[-1][0] if found else after
    return Selected(
        [Place(*row[:4]) for row in meant],
        sum(row[5] is not None for row in meant),
        {row[5] for row in meant if row[5] is not None},
        Chunk(len(meant), last, bool(found) and last < scope.last),
    )


def _revive(queue: Queue, selected: Selected) -> Steps[None]:
    now: int = yield NOW
    seqs = _seqs(selected)
    rows = yield Statement(REVIVE, (queue.strict, queue.strict, queue.sort_at(now), now, now, seqs))
    deadlines = [row[1] for row in rows if row[1]]
    if deadlines:
        yield Due(EXPIRY_DUE, min(deadlines))
    yield from _enter(queue, selected, sum(row[0] for row in rows))


def _move_over(target: Queue, selected: Selected) -> Steps[None]:
    """New messages in the target, with the same content; the originals go in the same
    transaction."""
    now: int = yield NOW
    seqs = _seqs(selected)
    strict, sort_at = target.strict, target.sort_at(now)
    yield Statement(COPY, (target.id, strict, strict, sort_at, now, now, seqs))
    yield Statement(DELETE_BY_SEQ, (seqs,))
    unlined = 0 if strict else len(selected.places) - selected.grouped
    yield from _enter(target, selected, unlined)


def _enter(queue: Queue, selected: Selected, unlined: int) -> Steps[None]:
    if unlined:
        yield Ready(queue.id, unlined)
    yield from lines.enter(queue.id, {""} if queue.strict else selected.groups)


def _seqs(selected: Selected) -> str:
    return json.dumps([place.seq for place in selected.places])

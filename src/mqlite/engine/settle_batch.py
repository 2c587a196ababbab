"""Settling and renewing whole batches, each in one transaction with positional results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from mqlite.engine import leaving, receipts
from mqlite.engine.catalog import Queue, existing_queue, resolve_queue
from mqlite.engine.lines import Place
from mqlite.engine.names import check_present
from mqlite.engine.steps import (
    LOCK_DUE,
    NOW,
    Due,
    Event,
    Statement,
    Steps,
    operation,
)
from mqlite.errors import InvalidArgument
from mqlite.model import MAX_RENEW_BATCH, Lease, RenewResult, SettleResult

CHUNK: Final = 512

SELECT_HELD: Final = """
    SELECT seq, lock_token, line, head, payload_id FROM mqlite_messages
     WHERE seq IN (SELECT value FROM json_each(?)) AND queue_id = ? AND state = 'locked'
       AND locked_until > ?
"""
RENEW: Final = """
    UPDATE mqlite_messages AS m SET locked_until = max(m.locked_until, ?)
      FROM json_each(?) AS lease
     WHERE m.seq = json_extract(lease.value, '$[0]')
       AND m.lock_token = json_extract(lease.value, '$[1]')
       AND m.queue_id = ? AND m.state = 'locked' AND m.locked_until > ?
    RETURNING seq, lock_token, locked_until
"""


@operation(settles=True)
def complete_batch(queue_name: str, leases: Sequence[Lease]) -> Steps[list[SettleResult]]:
    """Remove messages; any number. A slot is not ok where its token holds no live lease and
    the same request was not already carried out."""
    check_present(queue_name)
    queue = yield from resolve_queue(queue_name)
    if queue is None:
        return [SettleResult(seq, False) for seq, _ in leases]
    now: int = yield NOW
    wanted = list(dict.fromkeys(lease for lease in leases if lease[1]))
    done: set[Lease] = set()
    for chunk in _chunks(wanted):
        done.update((yield from _complete_held(queue, chunk, now)))
    settled = [lease for lease in wanted if lease in done]
    requests = {lease: receipts.digest(queue.id, *lease, "completed") for lease in wanted}
    for chunk in _chunks([lease for lease in wanted if lease not in done]):
        known = yield from receipts.known([(lease[0], requests[lease]) for lease in chunk], now)
        done.update(lease for lease in chunk if requests[lease] in known)
    if settled:
        yield Event("completed", queue.id, len(settled))
        yield from receipts.record([(lease[0], requests[lease]) for lease in settled], now)
    return [SettleResult(lease[0], lease in done) for lease in leases]


def _complete_held(queue: Queue, leases: Sequence[Lease], now: int) -> Steps[list[Lease]]:
    asked = set(leases)
    seqs = json.dumps([seq for seq, _ in leases])
    rows = yield Statement(SELECT_HELD, (seqs, queue.id, now))
    held = [row for row in rows if (row[0], row[1]) in asked]
    if held:
        places = [Place(row[0], *row[2:]) for row in held]
        yield from leaving.finish(queue, places, "completed")
    return [(row[0], row[1]) for row in held]


class Renewals(list[RenewResult]):
    """Renewed leases: a promise about the future, so checked again after the commit."""

    def recheck(self, now: int) -> Renewals:
        return Renewals(
            RenewResult(r.seq_number, True, r.locked_until_ms, r.locked_until_ms - now)
            if r.locked_until_ms > now
            else RenewResult(r.seq_number, False)
            for r in self
        )


@operation(settles=True)
def renew_batch(queue_name: str, leases: Sequence[Lease]) -> Steps[Renewals]:
    """Extend live leases by the queue's lock duration in one statement, never shortening one;
    at most 512, blank tokens counted. Raises NotFound, InvalidArgument."""
    check_present(queue_name)
    if len(leases) > MAX_RENEW_BATCH:
        raise InvalidArgument(
            f"messages must be at most {MAX_RENEW_BATCH} in one renewal, got {len(leases)}"
        )
    wanted = [lease for lease in leases if lease[1]]
    if not wanted:
        return Renewals(RenewResult(seq, False) for seq, _ in leases)
    queue = yield from existing_queue(queue_name)
    now: int = yield NOW
    until = now + queue.config.lock_duration_ms
    rows = yield Statement(RENEW, (until, json.dumps(wanted), queue.id, now))
    renewed = {(row[0], row[1]): row[2] for row in rows}
    if renewed:
        yield Due(LOCK_DUE, min(renewed.values()))
    return Renewals(
        RenewResult(lease[0], lease in renewed, renewed.get(lease, 0)) for lease in leases
    )


def _chunks(leases: list[Lease]) -> list[list[Lease]]:
    return [leases[at : at + CHUNK] for at in range(0, len(leases), CHUNK)]

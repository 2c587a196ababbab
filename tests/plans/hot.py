"""What each statement of the engine is allowed to touch.

`HOT` holds every access of a statement that runs for each message or in a sweep: the index and the
columns it seeks in it; `rowid` and `key` stand for the table itself. `walk` reads an index
from its start: only the first row where the statement ends with LIMIT 1, or a table of
queues; `sort` orders what was read. `COLD` holds the others, each with the reason why it need not be fast.
"""

from __future__ import annotations

from typing import Final

ROWID: Final = "rowid (rowid=?)"
_ALL_LOCKED: Final = ["walk mqlite_messages_locked", "sort"]
"""Looking at the locked messages of a queue reads those of all queues: an index that begins
with the queue would be paid for by every claim."""

HOT: Final[dict[str, list[str]]] = {
    # Names
    "catalog.SELECT_QUEUE": ["mqlite_queues_name (name=?)"],
    "catalog.SELECT_QUEUE_BY_ID": [ROWID],
    "catalog.SELECT_TOPIC": ["sqlite_autoindex_mqlite_subscriptions_1 (topic=?)"],
    # Send
    "content.INTO_PAYLOADS": [],
    "dedup.SELECT_KNOWN": ["key (queue_id=? AND key=?)"],
    "dedup.REMEMBER": [],
    "send.INTO_MESSAGES + OUTSIDE_LINES": [],
    "send.INTO_MESSAGES + IN_LINE": ["mqlite_messages_line (queue_id=? AND line=?)"],
    "send.COUNT_HEADS": ["rowid (rowid>? AND rowid<?)"],
    "send.SELECT_CANCELABLE": [ROWID],
    # Claim
    "receive.CLAIM_ONE": [ROWID, "mqlite_messages_ready (queue_id=?)"],
    "receive.SELECT_READY": ["mqlite_messages_ready (queue_id=?)"],
    "receive.LOCK": [ROWID],
    "receive.SELECT_BY_SEQ": [ROWID],
    "receive.DELETE_BY_SEQ": [ROWID],
    "receive.SELECT_DEFERRED": ["mqlite_messages_deferred (queue_id=? AND seq=? AND state=?)"],
    "attempts.SELECT_ATTEMPT": ["key (queue_id=? AND attempt_id=?)"],
    "attempts.SELECT_STILL_LOCKED": [ROWID],
    "attempts.RECORD": [],
    "attempts.FORGET": ["key (queue_id=? AND attempt_id=?)"],
    # Access keys: once for every request that carries one
    "keys.SELECT_PRESENTED": ["key (digest=?)"],
    # Lines
    "lines.PROMOTE": [ROWID, "mqlite_messages_line (queue_id=? AND line=?)"],
    "lines.DEMOTE": ["mqlite_messages_head (queue_id=? AND line=?)"],
    # Settle
    "settle.COMPLETE": [ROWID],
    "settle.SELECT_HELD": [ROWID],
    "settle.DEFER": [ROWID],
    "settle.RENEW": [ROWID],
    "settle_batch.SELECT_HELD": [ROWID],
    "settle_batch.RENEW": [ROWID],
    "failing.RETRY_LATER": [ROWID],
    "failing.RETRY_NOW": [ROWID],
    "leaving.DEAD_LETTER": [ROWID],
    "leaving.RETAIN": [ROWID],
    "leaving.DELETE": [ROWID],
    "content.DROP_PAYLOAD": [
        ROWID,
        "mqlite_messages_payload (payload_id=?)",
        "mqlite_finished_payload (payload_id=?)",
    ],
    "receipts.SELECT_RECEIPT": ["key (seq=? AND digest=?)"],
    "receipts.SELECT_RECEIPTS": ["key (seq=?)"],
    "receipts.INSERT_RECEIPT": [],
    # Sweeps
    "leases.RELEASE": [ROWID],
    "leases.SELECT_EXPIRED": ["mqlite_messages_locked (locked_until<?)"],
    "leases.NEXT_EXPIRY": ["walk mqlite_messages_locked"],
    "schedule.SELECT_DUE": ["mqlite_messages_due (visible_at<?)"],
    "schedule.NEXT_DUE": ["walk mqlite_messages_due"],
    "schedule.ACTIVATE": [ROWID],
    "expiry.SELECT_EXPIRED": ["mqlite_messages_expiry (expires_at>? AND expires_at<?)"],
    "expiry.SELECT_EXPIRED_ACTIVE": [
        "mqlite_messages_active_expiry (queue_id=? AND expires_at>? AND expires_at<?)"
    ],
    "expiry.NEXT_EXPIRY": ["mqlite_messages_expiry (expires_at>?)"],
    "janitor.SELECT_WIDEST_WINDOW": ["mqlite_queues_name"],
    "janitor.SELECT_DEDUP": ["mqlite_dedup_seen (seen_at<?)"],
    "janitor.DELETE_DEDUP": ["key (queue_id=? AND key=?)"],
    "janitor.SELECT_RECEIPTS": ["mqlite_receipts_expiry (expires_at<?)"],
    "janitor.DELETE_RECEIPT": ["key (seq=? AND digest=?)"],
    "janitor.SELECT_ATTEMPTS": ["mqlite_attempts_expiry (expires_at<?)"],
    "janitor.DELETE_ATTEMPT": ["key (queue_id=? AND attempt_id=?)"],
    "janitor.SELECT_RETAINED_TOO_LONG": [
        "walk mqlite_queues_name",
        "mqlite_finished_queue (queue_id=? AND finished_at<?)",
    ],
    "janitor.DELETE_FINISHED": [ROWID],
    "janitor.SELECT_DELETED_QUEUE": ["walk mqlite_queues_deleted"],
    "janitor.SELECT_FINISHED_OF": ["mqlite_finished_queue (queue_id=?)"],
    "janitor.DELETE_OF_QUEUE[0]": ["key (queue_id=? AND key=?)", "key (queue_id=?)"],
    "janitor.DELETE_OF_QUEUE[1]": ["key (queue_id=? AND attempt_id=?)", "key (queue_id=?)"],
    "janitor.DELETE_QUEUE": [ROWID],
    "janitor.SELECT_LAST_OF_CHUNK": ["rowid (rowid>?)"],
    "janitor.DELETE_ORPHANED_PAYLOADS": [
        ROWID,
        "rowid (rowid>? AND rowid<?)",
        "mqlite_messages_payload (payload_id=?)",
        "mqlite_finished_payload (payload_id=?)",
    ],
    # Dead letters
    "deadletters.SELECT_DEAD": ["mqlite_messages_dead (queue_id=? AND seq>? AND seq<?)"],
    "deadletters.SELECT_LAST_DEAD": ["mqlite_messages_dead (queue_id=?)"],
    "deadletters.REVIVE": [ROWID],
    "deadletters.COPY": [ROWID],
    "deadletters.DELETE_BY_SEQ": [ROWID],
    "retention.FIRST_YOUNG": ["mqlite_messages_dead (queue_id=?)"],
    "retention.NTH_NEWEST_DEAD": ["mqlite_messages_dead (queue_id=?)"],
    "retention.FIRST_OVER_BYTES": ["mqlite_messages_dead (queue_id=?)"],
    "retention.SELECT_DEAD_UP_TO": ["mqlite_messages_dead (queue_id=? AND seq<?)"],
    # Looking
    "browse.SELECT_SIZES[active]": ["mqlite_messages_active (queue_id=? AND seq>?)"],
    "browse.SELECT_SIZES[locked]": _ALL_LOCKED,
    "browse.SELECT_SIZES[deferred]": ["mqlite_messages_deferred (queue_id=? AND seq>?)"],
    "browse.SELECT_SIZES[scheduled]": ["mqlite_messages_scheduled (queue_id=? AND seq>?)"],
    "browse.SELECT_SIZES[dead_lettered]": ["mqlite_messages_dead (queue_id=? AND seq>?)"],
    "browse.SELECT_MESSAGES": [ROWID],
    "browse.COUNT[active]": ["mqlite_messages_active (queue_id=?)"],
    "browse.COUNT[locked]": _ALL_LOCKED[:1],
    "browse.COUNT[deferred]": ["mqlite_messages_deferred (queue_id=?)"],
    "browse.COUNT[scheduled]": ["mqlite_messages_scheduled (queue_id=?)"],
    "browse.COUNT[dead_lettered]": ["mqlite_messages_dead (queue_id=?)"],
    "browse.OLDEST[active]": ["mqlite_messages_active (queue_id=?)"],
    "browse.OLDEST[locked]": _ALL_LOCKED,
    "lines.COUNT_READY": ["mqlite_messages_ready (queue_id=?)"],
}

_ONCE: Final = "an administrator's call, on the few rows of queues or subscriptions"
_ON_OPEN: Final = "once on open, and reads what it is there to change"
_REORDER: Final = "reconfiguring across the strict boundary rewrites every live row on purpose"

COLD: Final[dict[str, str]] = {
    "browse.COUNT_QUEUES": _ONCE,
    "browse.COUNT_SUBSCRIPTIONS": _ONCE,
    "catalog.SELECT_QUEUES": _ONCE,
    "keys.INSERT_KEY": _ONCE,
    "keys.SELECT_KEYS_BY_ID": _ONCE,
    "keys.SELECT_KEY_TIMES": _ONCE,
    "keys.SELECT_NEWEST_KEYS": _ONCE,
    "keys.SELECT_OLDER_KEYS": _ONCE,
    "keys.SET_REVOKED": _ONCE,
    "queues.INSERT_QUEUE": _ONCE,
    "queues.UPDATE_QUEUE": _ONCE,
    "queues.SELECT_TOPIC_EXISTS": _ONCE,
    "queues.SET_PAUSED": _ONCE,
    "queues.MARK_DELETED": _ONCE,
    "queues.COUNT_SOME": _ONCE,
    "topics.SELECT_TOPIC_OF": _ONCE,
    "topics.INSERT_SUBSCRIPTION": _ONCE,
    "topics.UPDATE_EXPR": _ONCE,
    "topics.DELETE_SUBSCRIPTION": _ONCE,
    "topics.SELECT_SUBSCRIPTIONS": _ONCE,
    "topics.SELECT_BACKING_QUEUE": _ONCE,
    "leases.SELECT_ORPHANED": _ON_OPEN,
    "lines.PROMOTE_ALL": _REORDER,
    **{f"lines.{name}[{i}]": _REORDER for name in ("TO_STRICT", "FROM_STRICT") for i in range(4)},
}
COLD_MODULES: Final = {
    "doctor": "examines the whole database on purpose",
    "inventory": "counts everything on purpose; bench/observe.py says what it costs",
}

"""The tools: name, route and arguments of each, and what an agent has to know to use it.

Selected operations of the broker, one to one. Few, and with few arguments, on purpose:
the more a tool can do, the more ways there are to misuse it.
"""

from __future__ import annotations

from typing import Final

from mqlite.keys import KEY_SORTS, PERMISSIONS
from mqlite.mcp.arguments import INTEGER, SWITCH, TEXT, Argument, Kind, array_of, one_of
from mqlite.mcp.forwarding import (
    Effect,
    Tool,
    bounded,
    create_missing,
    create_named_key,
    one_message,
    with_reason,
)
from mqlite.model import STATES

INSTRUCTIONS: Final = """\
mqlite is a durable message queue. Messages are delivered at least once, so the same one may
come again.

The life of a message: `receive` locks it for you and answers its `seq_number` and
`lock_token`. Work on it, then settle it with that pair: `complete` (done, it is removed),
`abandon` (deliver it again), `reject` (move it to the dead letters) or `defer` (set it
aside). The lock ends at `locked_until_ms`; `renew` extends it before that. Bodies are
answered in base64.

`lock_lost` means that the lock has ended, and somebody else may have the message: stop
working on it, do not settle or renew it with that token, and call `receive` again.

A tool that fails answers `error:`, a code and what happened. After `unavailable` nothing was
done, and the call can be repeated. After `outcome_unknown` it may have been done: look with
`peek`, `stats` or `list_keys` before you repeat it. `unauthenticated` and
`permission_denied` are for the operator to solve; repeating the call does not help.
"""

_READS: Final = Effect(reads=True, repeats=True)
_SETTLES: Final = Effect(repeats=True)
_REMOVES: Final = Effect(destroys=True, repeats=True)


def _optional(name: str, kind: Kind, about: str) -> Argument:
    return Argument(name, kind, about, required=False)


_QUEUE: Final = Argument("queue", TEXT, "Name of the queue, or of a subscription.")
_LEASE: Final = (
    _QUEUE,
    Argument("seq_number", INTEGER, "The message's seq_number, as received."),
    Argument("lock_token", TEXT, "The message's lock_token, as received."),
)
_KEY_ID: Final = Argument("id", TEXT, "Public id of the key: 32 lowercase hexadecimal characters.")

TOOLS: Final = (
    Tool(
        "observe",
        "AdminService/Observe",
        "Observe the whole broker: message counts of every queue, and since the broker started"
        " what was done, how long storage took, maintenance, filter failures and HTTP requests."
        " Look at collection.state first: unless it is available, counts are missing, not zero."
        " Needs a monitor or manage credential.",
        effect=_READS,
    ),
    Tool(
        "list_queues",
        "AdminService/ListQueues",
        "List the queues and subscriptions with their settings.",
        effect=_READS,
    ),
    Tool(
        "create_queue",
        "AdminService/CreateQueue",
        "Create a queue with default settings: a lock of 30 seconds, a dead letter after 10"
        " deliveries, no time to live. A queue that exists keeps its settings and messages.",
        (Argument("name", TEXT, "Name of the queue: 1 to 255 bytes, no control characters."),),
        Effect(repeats=True),
        run=create_missing,
    ),
    Tool(
        "send",
        "QueueService/Send",
        "Send one message to a queue or topic. Answers its seq_number; 0 means that no"
        " subscription of the topic took it. Sending again makes a second message, unless the"
        " queue has a dedup window and both have the same message_id.",
        (
            Argument("queue", TEXT, "Name of the queue or topic."),
            Argument("body", TEXT, "The content, as text, stored in UTF-8. At most 1 MiB."),
            _optional("message_id", TEXT, "Your id of the message, for duplicate detection."),
            _optional(
                "group_id",
                TEXT,
                "Messages with the same group_id are delivered one after the other; group_fifo"
                " queues demand one.",
            ),
        ),
        request=one_message,
    ),
    Tool(
        "receive",
        "QueueService/Receive",
        "Receive messages and lock them (peek-lock). Each has a body in base64, a seq_number and"
        " a lock_token to settle it with, and locked_until_ms, when the lock ends. Settle every"
        " message you receive: complete, abandon, reject or defer. One that is not settled in"
        " time is delivered again, and after too many deliveries becomes a dead letter. An empty"
        " list means that there was nothing to receive.",
        (
            _QUEUE,
            _optional("max_messages", INTEGER, "At most this many: 1 (the default) to 256."),
            _optional(
                "wait_time_ms",
                INTEGER,
                "How long to wait for the first message, in milliseconds: 0 (the default) to"
                " 20000.",
            ),
        ),
    ),
    Tool(
        "complete",
        "QueueService/Complete",
        "Settle a received message as done: it is removed for good. Repeating it is safe."
        " lock_lost means that the lock ended first: the message may be delivered again, to you"
        " or to somebody else.",
        _LEASE,
        _REMOVES,
    ),
    Tool(
        "abandon",
        "QueueService/Abandon",
        "Give a received message back, to be delivered again. The delivery counts: after too"
        " many the message becomes a dead letter.",
        (*_LEASE, _optional("delay_ms", INTEGER, "Milliseconds before it is delivered again.")),
        _SETTLES,
    ),
    Tool(
        "reject",
        "QueueService/Reject",
        "Move a received message to the dead letters, because delivering it again cannot help."
        " redrive brings dead letters back.",
        (*_LEASE, _optional("reason", TEXT, "Why, for whoever looks at the dead letters.")),
        _SETTLES,
        with_reason,
    ),
    Tool(
        "renew",
        "QueueService/Renew",
        "Extend the lock of a received message, to the queue's lock duration from now, so that"
        " it is not delivered to somebody else while you work on it. Call it well before"
        " locked_until_ms: a lock that has ended cannot be renewed.",
        _LEASE,
    ),
    Tool(
        "defer",
        "QueueService/Defer",
        "Set a received message aside: it is delivered no more until receive_deferred asks for"
        " its seq_number. Keep the number; peek with state deferred finds it again.",
        _LEASE,
        _SETTLES,
    ),
    Tool(
        "receive_deferred",
        "QueueService/ReceiveDeferred",
        "Receive and lock deferred messages by their numbers, with new lock tokens. Settle them"
        " like received ones. Numbers that are not deferred are skipped.",
        (_QUEUE, Argument("seq_numbers", array_of(INTEGER), "The seq_numbers, at most 256.")),
    ),
    Tool(
        "peek",
        "QueueService/Peek",
        "Look at messages without locking or changing them. They cannot be settled: receive"
        " them for that. A queue that does not exist has no messages.",
        (
            _QUEUE,
            _optional("state", one_of(STATES), "Only messages in this state."),
            _optional("max", INTEGER, "At most this many: 32 by default, up to 1000."),
        ),
        _READS,
    ),
    Tool(
        "stats",
        "QueueService/Stats",
        "Count the messages of a queue by state, with the age of the oldest that is active or"
        " locked.",
        (_QUEUE,),
        _READS,
    ),
    Tool(
        "redrive",
        "AdminService/Redrive",
        "Make dead letters of a queue active again, the oldest first. Do it when what made them"
        " fail is fixed. complete: false in the answer means that calling it again goes on.",
        (_QUEUE, _optional("max", INTEGER, "At most this many; by default all of them.")),
    ),
    Tool(
        "purge",
        "AdminService/Purge",
        "Delete dead letters of a queue for good, the oldest first. Give max, or all: true. Look"
        " at them before, with peek and state dead_lettered. complete: false in the answer means"
        " that calling it again goes on.",
        (
            _QUEUE,
            _optional("max", INTEGER, "At most this many: 1 or more."),
            _optional("all", SWITCH, "true, instead of max: every dead letter of the queue."),
        ),
        Effect(destroys=True),
        bounded,
    ),
    Tool(
        "create_key",
        "AuthService/CreateKey",
        "Create an access key. Choose a random id first and keep it. The answer holds the secret"
        " token, and nothing shows it again. Do not repeat a call that failed with"
        " outcome_unknown: look for the id with list_keys, revoke it with revoke_key, and create"
        " another key under a new id. Needs a manage credential.",
        (
            _KEY_ID,
            Argument("name", TEXT, "A label of 1 to 128 bytes; need not be unique."),
            Argument(
                "permissions",
                array_of(one_of(PERMISSIONS)),
                "send, listen, both, or manage, which includes both.",
            ),
            _optional(
                "expires_at_ms",
                INTEGER,
                "When it expires, in milliseconds since 1970 in UTC; 0 (the default) is never.",
            ),
        ),
        run=create_named_key,
    ),
    Tool(
        "list_keys",
        "AuthService/ListKeys",
        "List access keys, also revoked and expired ones, without their tokens. next_after_id in"
        " the answer is the after_id of the next page; the last page has none. Needs a manage"
        " credential.",
        (
            _optional("after_id", TEXT, "Continue after this id; keep the same sort."),
            _optional("limit", INTEGER, "At most this many: 100 by default, up to 1000."),
            _optional(
                "sort",
                one_of(KEY_SORTS),
                "id_asc (the default), or created_desc: the newest first.",
            ),
        ),
        _READS,
    ),
    Tool(
        "revoke_key",
        "AuthService/RevokeKey",
        "Revoke an access key by its id: it opens nothing any more, and that cannot be undone."
        " Repeating it is safe. Needs a manage credential.",
        (_KEY_ID,),
        _REMOVES,
    ),
)

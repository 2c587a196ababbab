"""What the machine draws: small sets of values, so that things meet."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

MAX_BYTES = 4096
ANSWER_BYTES = 6000


class Long(bytes):
    """A body that does not fill the page when a failure is printed."""

    def __new__(cls, size: int) -> Long:
        return super().__new__(cls, b"x" * size)

    def __repr__(self) -> str:
        return f"Long({len(self)})"


queue_names = st.sampled_from(["a"] * 6 + ["b"] * 3 + ["s1", "s2", "t", "nowhere"])
"""Queues, backing queues, a topic (which is no queue), and a name that stands for nothing."""
targets = st.sampled_from(["a"] * 6 + ["b"] * 3 + ["t"] * 3 + ["s1", "s2", "nowhere"])
any_names = st.sampled_from(["a", "b", "s1", "s2", "t", "u"])

groups = st.sampled_from(["", "g", "g", "h"])
priorities = st.sampled_from([0] * 6 + [5, 5, -5, 1000, -1000, 1001])
bodies = st.sampled_from([b"", b"x", b"x", b"yy", Long(1500), Long(MAX_BYTES), Long(5000)])
message_ids = st.sampled_from(["", "", "m1", "m2"])
properties = st.sampled_from([{}, {}, {"k": "v", "": ""}, {"large": "p" * 1200}])
delays_ms = st.sampled_from([0, 1, 500, 2000, 30_000])
ttls_ms = st.sampled_from([None, None, None, 1, 1500, 20_000])
ats_ms = st.sampled_from([None, None, None, 0, 1000, 8000])
modes = st.sampled_from(["peek_lock", "peek_lock", "receive_and_delete"])
limits = st.sampled_from([1, 1, 2, 3, 20])
attempt_ids = st.sampled_from(["", "", "try1", "try2"])
picks = st.integers(0, 40)
"""Which of the things that the machine remembers; 0 is the last one."""
some_picks = st.lists(st.integers(0, 12), max_size=6)
twists = st.sampled_from(["none"] * 8 + ["token", "blank", "seq", "queue"])
verbs = st.sampled_from(
    ["complete"] * 4
    + ["abandon"] * 4
    + ["snooze"] * 2
    + ["reject"] * 2
    + ["defer"] * 2
    + ["release"]
)
jumps_ms = st.sampled_from(
    [1, 400, 1000, 1500, 8000, 30_000, 61_000, 301_000, 1_801_000, -1, -600, -3000, -45_000]
)

drafts = st.fixed_dictionaries(
    {
        "body": bodies,
        "group": groups,
        "priority": priorities,
        "message_id": message_ids,
        "properties": properties,
        "subject": st.sampled_from(["", "s"]),
        "correlation_id": st.sampled_from(["", "c"]),
        "reply_to": st.sampled_from(["", "r"]),
        "content_type": st.sampled_from(["", "text/plain"]),
    }
)
lines = st.lists(
    st.tuples(groups, st.sampled_from([0, 0, 0, 5]), st.sampled_from([0, 0, 0, 2500])),
    min_size=2,
    max_size=6,
)
"""Groups, priorities and sizes of messages that are otherwise alike."""

_settings = st.fixed_dictionaries(
    {},
    optional={
        "lock_duration_ms": st.sampled_from([1000, 30_000, 600_000]),
        "max_delivery_count": st.sampled_from([1, 2, 3]),
        "default_ttl_ms": st.sampled_from([0, 5000, 60_000]),
        "dead_letter_on_expire": st.booleans(),
        "dedup_window_ms": st.sampled_from([0, 10_000, 60_000]),
        "ordering_mode": st.sampled_from(["standard", "group_fifo", "strict_fifo"]),
        "dlq_max_age_ms": st.sampled_from([-1, 0, 20_000]),
        "dlq_max_count": st.sampled_from([-1, 0, 2]),
        "dlq_max_bytes": st.sampled_from([-1, 0, 3, 2000]),
        "retry_initial_delay_ms": st.sampled_from([0, 700, 5000]),
        "retry_max_delay_ms": st.sampled_from([0, 3000]),
        "retry_multiplier": st.sampled_from([1.0, 2.0, 3.5]),
        "retry_jitter": st.sampled_from([0.0, 0.5]),
        "max_counts": st.sampled_from(["deliveries", "failures"]),
        "retain_completed_ms": st.sampled_from([0, 60_000]),
        "keep_leases": st.booleans(),
        "claim_order": st.sampled_from(["sequence", "due_time"]),
    },
)


ordering = st.fixed_dictionaries(
    {
        "ordering_mode": st.sampled_from(["standard", "group_fifo", "strict_fifo"]),
        "claim_order": st.sampled_from(["sequence", "sequence", "due_time"]),
    }
)
_retrying = st.fixed_dictionaries(
    {
        "retry_initial_delay_ms": st.just(700),
        "retry_max_delay_ms": st.sampled_from([0, 1000]),
        "retry_multiplier": st.sampled_from([2.0, 3.5]),
        "retry_jitter": st.sampled_from([0.0, 0.5]),
        "max_counts": st.sampled_from(["deliveries", "failures"]),
    }
)
_remembering = st.fixed_dictionaries({"dedup_window_ms": st.sampled_from([1000, 10_000])})
_mortal = st.fixed_dictionaries(
    {"default_ttl_ms": st.sampled_from([1000, 5000]), "dead_letter_on_expire": st.booleans()}
)
_keeping = st.fixed_dictionaries(
    {"retain_completed_ms": st.just(1000), "dlq_max_bytes": st.sampled_from([3, 9])}
)
settings = ordering | ordering | _retrying | _remembering | _mortal | _keeping | _settings
"""Often only the order, so that messages live long enough to be ordered."""


def as_arguments(drawn: dict[str, Any]) -> dict[str, Any]:
    """Settings as the Python API takes them."""
    arguments: dict[str, Any] = {}
    for name, value in drawn.items():
        if name.startswith("dlq_") and value < 0:
            value = None
        elif name.endswith("_ms"):
            value = milliseconds(value)
        arguments[name.removesuffix("_ms")] = value
    return arguments


def milliseconds(value: int) -> timedelta:
    return timedelta(milliseconds=value)


offsets = st.sampled_from([None, None, -1, 0, 1])
"""Milliseconds beside the moment from which the answer is another; None: at any time."""

ARGUMENTS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "rest": {},
    "configure": {
        "name": any_names,
        "kind": st.sampled_from(["queue"] * 3 + ["subscription"]),
        "drawn": settings,
    },
    "reorder": {"mode": st.sampled_from(["standard", "group_fifo", "strict_fifo"])},
    "rename": {
        "action": st.sampled_from(["subscribe", "subscribe", "unsubscribe", "delete"]),
        "topic": st.sampled_from(["t", "t", "t", "u", "a"]),
        "name": any_names,
        "generation": st.sampled_from([None, None, "1", "7"]),
    },
    "pause": {"name": any_names, "paused": st.sampled_from([True, False, False, False])},
    "fill": {"lines": lines, "ms": st.sampled_from([0, 0, 1, 7])},
    "send": {"to": targets, "draft": drafts, "at": ats_ms, "ttl": ttls_ms},
    "send_again": {"pick": st.integers(0, 3), "offset": offsets, "changed": st.booleans()},
    "send_batch": {
        "to": targets,
        "drafts": st.lists(drafts, max_size=4),
        "at": ats_ms,
        "ttl": ttls_ms,
    },
    "cancel": {"name": queue_names, "pick": picks},
    "consume": {"limit": limits, "mode": modes, "attempt": st.booleans()},
    "receive_again": {
        "pick": st.integers(0, 3),
        "mode": modes,
        "offset": offsets,
    },
    "receive": {"name": queue_names, "limit": limits, "mode": modes, "attempt": attempt_ids},
    "receive_for_a_while": {"limit": limits, "lease": st.sampled_from([1, 1500, 90_000])},
    "receive_deferred": {"name": queue_names, "some": some_picks},
    "fetch": {"some": some_picks},
    "give_back": {
        "pick": picks,
        "name": st.none() | queue_names,
        "offset": offsets,
    },
    "work": {"verb": st.none() | verbs, "pick": picks, "delay": delays_ms},
    "settle": {
        "verb": verbs,
        "pick": picks,
        "twist": twists,
        "delay": delays_ms,
        "reason": st.sampled_from(["", "AppRequested", "bad"]),
        "description": st.sampled_from(["", "why"]),
    },
    "settle_again": {
        "pick": picks,
        "change": st.sampled_from([None, None, "verb", "arguments", "seq"]),
    },
    "complete_batch": {
        "name": queue_names,
        "some": some_picks,
        "spoilt": st.lists(twists, max_size=3),
    },
    "renew_batch": {
        "name": queue_names,
        "some": some_picks,
        "spoilt": st.lists(twists, max_size=3),
    },
    "renew": {"pick": picks, "twist": twists},
    "time_passes": {"ms": jumps_ms},
    "a_moment_comes": {"pick": st.integers(0, 9), "offset": st.sampled_from([0, 0, -1, 1])},
    "maintain": {"ms": st.sampled_from([0, 0, 1000, 8000, 30_000])},
    "redrive": {
        "name": queue_names,
        "into": st.sampled_from(["", "", "", "a", "b", "s1", "t", "nowhere"]),
        "limit": st.sampled_from([0, 0, 1, 3, -1]),
        "age": st.sampled_from([0, 0, 1, 5000]),
        "offset": offsets,
    },
    "purge": {
        "name": queue_names,
        "limit": st.sampled_from([0, 0, 1, 3, -1]),
        "age": st.sampled_from([0, 1, 5000]),
        "offset": offsets,
    },
    "peek": {
        "name": queue_names,
        "pick": picks,
        "state": st.sampled_from(
            [None, "active", "locked", "deferred", "scheduled", "dead_lettered"]
        ),
        "limit": st.sampled_from([1, 2, 5, 1000]),
    },
    "restart": {"crash": st.booleans()},
}
"""What an action of the machine takes."""

NEED_LEASES = {"work", "settle", "complete_batch", "renew_batch", "renew"}

_OFTEN = {
    "fill": 8,
    "consume": 9,
    "work": 12,
    "settle": 4,
    "maintain": 4,
    "send": 4,
    "fetch": 3,
    "a_moment_comes": 3,
}
_SOMETIMES = {"receive": 3, "time_passes": 3, "send_batch": 3, "settle_again": 3, "redrive": 3}
ACTIONS = [name for name in ARGUMENTS for _ in range((_OFTEN | _SOMETIMES).get(name, 2))]
"""Each as often as it is drawn. The first does nothing: hypothesis begins with runs of it."""

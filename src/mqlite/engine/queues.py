"""Queues: create and update, pause, delete, list."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, Literal, get_args, get_origin

import msgspec

from mqlite.engine import lines
from mqlite.engine.catalog import (
    SELECT_QUEUES,
    SETTINGS,
    Queue,
    existing_queue,
    queue_from_row,
    resolve_queue,
)
from mqlite.engine.names import check_name
from mqlite.engine.steps import (
    NOW,
    Changed,
    Gone,
    Row,
    Statement,
    Steps,
    operation,
)
from mqlite.errors import InvalidArgument, NameConflict, QueueChanged, QueueNotEmpty
from mqlite.model import EXTENSION_SETTINGS, SETTING_TYPES, STATES, QueueConfig, QueueInfo

LONGEST_MS: Final = 2**62
"""Longest duration that can be added to a time without leaving 64 bits."""

INSERT_QUEUE: Final = f"""
    INSERT INTO mqlite_queues (name, kind, created_at, updated_at, {", ".join(SETTINGS)})
    VALUES (?, ?, ?, ?, {", ".join("?" * len(SETTINGS))})
"""
UPDATE_QUEUE: Final = f"""
    UPDATE mqlite_queues SET updated_at = ?, {", ".join(f"{name} = ?" for name in SETTINGS)}
     WHERE id = ?
"""
SELECT_TOPIC_EXISTS: Final = "SELECT 1 FROM mqlite_subscriptions WHERE topic = ? LIMIT 1"
SET_PAUSED: Final = "UPDATE mqlite_queues SET paused = ?, updated_at = ? WHERE id = ?"
MARK_DELETED: Final = "UPDATE mqlite_queues SET deleted_at = ? WHERE id = ?"
_COUNTED: Final = 1000
COUNT_SOME: Final = " UNION ALL ".join(
    f"SELECT '{state}', count(*) FROM (SELECT 1 FROM mqlite_messages"
    f" WHERE queue_id = ? AND state = '{state}' LIMIT {_COUNTED + 1})"
    for state in STATES
)
"""How many messages of each state there are, counted just beyond `_COUNTED`."""
_WAYS_OUT: Final = {
    "active": "receive and complete",
    "locked": "complete",
    "deferred": "receive by number and complete",
    "scheduled": "cancel",
    "dead_lettered": "purge or redrive",
}


def merge_settings(settings: Mapping[str, Any], present: QueueConfig | None) -> QueueConfig:
    """The settings a queue gets: a documented one that is left out takes its default, an
    additional one keeps its value. Raises InvalidArgument naming the setting."""
    merged = dict(settings)
    if present is not None:
        for name in EXTENSION_SETTINGS - merged.keys():
            merged[name] = getattr(present, name)
    config = QueueConfig(**merged)
    defaults = QueueConfig()
    config = msgspec.structs.replace(
        config,
        lock_duration_ms=config.lock_duration_ms or defaults.lock_duration_ms,
        max_delivery_count=config.max_delivery_count or defaults.max_delivery_count,
        ordering_mode=config.ordering_mode or defaults.ordering_mode,
    )
    _check_config(config)
    return config


def _check_config(config: QueueConfig) -> None:
    for name, kind in SETTING_TYPES.items():
        value = getattr(config, name)
        if name.startswith("dlq_"):
            _check_range(name, value, -1, LONGEST_MS)
        elif name.endswith("_ms"):
            _check_range(name, value, 0, LONGEST_MS)
        elif get_origin(kind) is Literal:
            _check_choice(name, value, get_args(kind))
    _check_range("max_delivery_count", config.max_delivery_count, 1, 2**31 - 1)
    if not (math.isfinite(config.retry_multiplier) and config.retry_multiplier >= 1):
        raise InvalidArgument(
            f"retry_multiplier must be a finite number of at least 1, got {config.retry_multiplier}"
        )
    if not 0 <= config.retry_jitter <= 1:
        raise InvalidArgument(f"retry_jitter must be 0 to 1, got {config.retry_jitter}")
    if 0 < config.retry_max_delay_ms < config.retry_initial_delay_ms:
        raise InvalidArgument("retry_max_delay_ms must not be below retry_initial_delay_ms")


def _check_range(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InvalidArgument(f"{name} must be {low} to {high}, got {value}")


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidArgument(f"{name} must be one of {', '.join(choices)}; got {value!r}")


@operation()
def create_queue(name: str, kind: str, settings: Mapping[str, Any]) -> Steps[None]:
    """Create a queue, or update one of the same kind; its messages stay as they are.

    `settings` are fields of `QueueConfig`. Raises InvalidArgument, NameConflict.
    """
    check_name(name)
    kind = kind or "queue"
    _check_choice("kind", kind, ("queue", "subscription"))
    fresh = merge_settings(settings, None)
    if (yield Statement(SELECT_TOPIC_EXISTS, (name,))):
        raise NameConflict(f"{name!r} is a topic")
    queue = yield from resolve_queue(name)
    if queue is None:
        yield from insert_queue(name, kind, fresh)
    elif queue.kind != kind:
        raise NameConflict(f"{name!r} already exists as a {queue.kind}")
    else:
        yield from _update(queue, merge_settings(settings, queue.config))


def insert_queue(name: str, kind: str, config: QueueConfig) -> Steps[None]:
    now: int = yield NOW
    yield Statement(INSERT_QUEUE, (name, kind, now, now, *msgspec.structs.astuple(config)))
    yield Changed(name)


def _update(queue: Queue, config: QueueConfig) -> Steps[None]:
    now: int = yield NOW
    yield Statement(UPDATE_QUEUE, (now, *msgspec.structs.astuple(config), queue.id))
    yield Changed(queue.name)
    strict = config.ordering_mode == "strict_fifo"
    if strict != queue.strict:
        yield from lines.reorder(queue.id, strict=strict)


@operation()
def set_paused(name: str, paused: bool) -> Steps[None]:
    """Stop or allow claims; sends and settlements go on. Raises NotFound."""
    queue = yield from existing_queue(name, "name")
    now: int = yield NOW
    yield Statement(SET_PAUSED, (paused, now, queue.id))
    yield Changed(name)
    if not paused:
        yield from lines.wake(queue.id)


@operation(reads=True)
def generation(name: str) -> Steps[str]:
    """The present incarnation of the name. Raises NotFound."""
    queue = yield from existing_queue(name, "name")
    return queue.generation


@operation()
def delete_queue(name: str, expected: str) -> Steps[None]:
    """Delete an empty plain queue if it is still that of the `expected` generation.

    Raises InvalidArgument (no generation, a backing queue), NotFound, QueueChanged,
    QueueNotEmpty.
    """
    queue = yield from existing_queue(name, "name")
    if queue.kind != "queue":
        raise InvalidArgument(f"{name!r} is a subscription; unsubscribe removes it")
    yield from retire(queue, expected)


def retire(queue: Queue, expected: str) -> Steps[None]:
    """Mark an empty queue as deleted; what is left of it goes in chunks, later."""
    if not expected:
        raise InvalidArgument("generation must be given; list_queues reports it")
    if expected != queue.generation:
        raise QueueChanged(f"{queue.name!r} is now another queue than generation {expected!r}")
    counts: list[Row] = yield Statement(COUNT_SOME, (queue.id,) * len(STATES))
    if held := [_held(state, number) for state, number in counts if number]:
        raise QueueNotEmpty(f"{queue.name!r} still holds messages: {', '.join(held)}")
    now: int = yield NOW
    yield Statement(MARK_DELETED, (now, queue.id))
    yield Changed(queue.name)
    yield Gone(queue.id, queue.name)


def _held(state: str, number: int) -> str:
    shown = f"more than {_COUNTED}" if number > _COUNTED else number
    return f"{shown} {state} ({_WAYS_OUT[state]})"


@operation(reads=True)
def list_queues() -> Steps[list[QueueInfo]]:
    """Queues and backing queues, ascending by the bytes of their names."""
    rows = yield Statement(SELECT_QUEUES)
    return [
        QueueInfo(
            name=queue.name,
            kind=queue.kind,
            generation=queue.generation,
            config=queue.config,
            paused=queue.paused,
        )
        for queue in map(queue_from_row, rows)
    ]

"""The model of queues, topics and subscriptions, which share one flat namespace."""

from __future__ import annotations

from typing import Any

from .world import EXTENSIONS, SETTINGS, STATES, Queue, Refused, World


def create_queue(world: World, name: str, kind: str, settings: dict[str, Any]) -> None:
    given = {**SETTINGS, **EXTENSIONS, **settings}
    _check(given)
    if world.subscriptions(name):
        raise Refused("NameConflict")
    queue = world.queues.get(name)
    if queue is None:
        _insert(world, name, kind, given)
        return
    if queue.kind != kind:
        raise Refused("NameConflict")
    kept = {key: queue.settings[key] for key in EXTENSIONS}
    merged = {**SETTINGS, **kept, **settings}
    _check(merged)
    queue.settings = merged


def _check(settings: dict[str, Any]) -> None:
    if 0 < settings["retry_max_delay_ms"] < settings["retry_initial_delay_ms"]:
        raise Refused("InvalidArgument")


def _insert(world: World, name: str, kind: str, settings: dict[str, Any]) -> None:
    world.last_queue += 1
    world.queues[name] = Queue(world.last_queue, name, kind, settings)


def subscribe(world: World, topic: str, name: str) -> None:
    if topic == name or topic in world.queues or world.subscriptions(name):
        raise Refused("NameConflict")
    queue = world.queues.get(name)
    if queue is not None and queue.kind == "queue":
        raise Refused("NameConflict")
    if world.topics.get(name, topic) != topic:
        raise Refused("NameConflict")
    if queue is None:
        _insert(world, name, "subscription", {**SETTINGS, **EXTENSIONS})
    world.topics[name] = topic


def unsubscribe(world: World, topic: str, name: str, generation: str | None) -> None:
    if world.topics.get(name) != topic:
        raise Refused("NotFound")
    _retire(world, world.queues[name], generation)
    del world.topics[name]


def delete_queue(world: World, name: str, generation: str | None) -> None:
    queue = world.queue(name)
    if queue.kind != "queue":
        raise Refused("InvalidArgument")
    _retire(world, queue, generation)


def _retire(world: World, queue: Queue, generation: str | None) -> None:
    if generation is not None and generation != str(queue.id):
        raise Refused("QueueChanged")
    if queue.rows:
        raise Refused("QueueNotEmpty")
    del world.queues[queue.name]


def set_paused(world: World, name: str, paused: bool) -> None:
    world.queue(name).paused = paused


def list_queues(world: World) -> list[dict[str, Any]]:
    return [
        {
            "name": queue.name,
            "kind": queue.kind,
            "generation": str(queue.id),
            "paused": queue.paused,
            "config": queue.settings,
        }
        for queue in sorted(world.queues.values(), key=lambda queue: queue.name.encode())
    ]


def list_subscriptions(world: World) -> list[tuple[str, str, str]]:
    return sorted((topic, name, "") for name, topic in world.topics.items())


def stats(world: World, name: str) -> dict[str, Any]:
    queue = world.queue(name)
    counts = {state: len(queue.of(state)) for state in STATES}
    # The smallest sequence number stands for the oldest, which it is unless the clock was set
    # back; upstream takes the smallest time.
    oldest = [
        min(queue.of(state), key=lambda row: row.seq).enqueued_at
        for state in ("active", "locked")
        if counts[state]
    ]
    age = max(world.now - min(oldest), 0) if oldest else 0
    return {
        "queue": name,
        "total": len(queue.rows),
        "oldest_message_age_ms": age,
        **counts,
    }


def peek(world: World, name: str, from_seq: int, state: str | None, limit: int) -> list[Any]:
    """The page ends with the message that reaches the byte bound."""
    if name not in world.queues:
        return []
    page: list[Any] = []
    total = 0
    for row in sorted(world.queues[name].rows, key=lambda row: row.seq):
        if row.seq < from_seq or (state is not None and row.state != state):
            continue
        if len(page) == limit or total >= world.answer_bytes:
            break
        total += len(row.body)
        page.append(row.peeked())
    return page

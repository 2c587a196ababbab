"""What names stand for, remembered between operations."""

from __future__ import annotations

from typing import Protocol

from mqlite.engine.catalog import Queue, Topic


class Names(Protocol):
    """What a runner knows of names and ids without looking into the database."""

    def known(self, name: str) -> Queue | Topic | None:
        """What `name` stands for; None where the database must be asked."""

    def known_queue(self, id_: int) -> Queue | None:
        """The live queue with this id; None where the database must be asked."""

    def remember(self, found: Queue | Topic) -> None:
        """The database answered with this."""

    def changed(self, name: str) -> None:
        """The entity of this name is no longer what it was."""


class NoNames:
    """Remembers nothing: for connections that see another state than the writer's."""

    def known(self, name: str) -> None:
        return None

    def known_queue(self, id_: int) -> None:
        return None

    def remember(self, found: Queue | Topic) -> None:
        pass

    def changed(self, name: str) -> None:
        pass


class NameCache:
    """Remembers what was found, never that something was not found: names come from
    callers, and a flood of unknown ones must not fill the memory.

    Only the holder of the writer changes it, inside the transaction, so that the rest of
    the transaction sees its own changes. `version` moves with every change: a rollback that
    finds it moved forgets everything.
    """

    def __init__(self) -> None:
        self.version = 0
        self._by_name: dict[str, Queue | Topic] = {}
        self._by_id: dict[int, Queue] = {}

    def known(self, name: str) -> Queue | Topic | None:
        return self._by_name.get(name)

    def known_queue(self, id_: int) -> Queue | None:
        return self._by_id.get(id_)

    def remember(self, found: Queue | Topic) -> None:
        self._by_name[found.name] = found
        if isinstance(found, Queue):
            self._by_id[found.id] = found

    def changed(self, name: str) -> None:
        self.version += 1
        gone = self._by_name.pop(name, None)
        if isinstance(gone, Queue):
            self._by_id.pop(gone.id, None)

    def clear(self) -> None:
        """Forget everything: a transaction that changed names was rolled back."""
        self.version += 1
        self._by_name.clear()
        self._by_id.clear()

"""Every message a receiver holds, and the room for more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Final

from mqlite.receiver.jobs import Job

UNSETTLED: Final = 256
"""How many finished messages may wait to be settled before nothing is claimed any more."""


class Ledger:
    """Counts by what is held. A message has a slot from the claim to the end of its handler;
    then it waits to be settled."""

    def __init__(
        self, concurrency: int, emptied: Callable[[], object], *, gather: float = 0
    ) -> None:
        self._concurrency = concurrency
        self._gather = gather
        self._emptied = emptied
        self._room = threading.Condition(threading.Lock())
        self._reserved = 0
        self._running: dict[Job, None] = {}
        self._unsettled: dict[Job, None] = {}
        self._stopped = False

    def reserve(self, most: int) -> int:
        """Take free slots, waiting for one, and for `gather` seconds for as many as may be
        taken: a claim that is a round trip should not be for the first few. 0 after `stop`."""
        with self._room:
            while not self._stopped:
                if self._gather and 0 < self._free() < most:
                    self._room.wait_for(lambda: self._stopped or self._free() >= most, self._gather)
                if not self._stopped and (free := self._free()):
                    taken = min(free, most)
                    self._reserved += taken
                    return taken
                if not self._stopped:
                    self._room.wait()
        return 0

    def admit(self, jobs: Iterable[Job], reserved: int) -> None:
        """The slots are used for these; those left over are free again."""
        with self._room:
            self._running.update(dict.fromkeys(jobs))
            self._reserved -= reserved
            if self._stopped:
                self._emptied()

    def ended(self, job: Job, *, settles: bool) -> None:
        """Its slot is free; it is left to settle it, or not."""
        with self._room:
            self._running.pop(job, None)
            if settles:
                self._unsettled[job] = None
            else:
                job.let_go()
            self._changed()

    def settled(self, jobs: Iterable[Job]) -> None:
        """Nothing is left to do for these."""
        with self._room:
            for job in jobs:
                self._unsettled.pop(job, None)
                job.let_go()
            self._changed()

    def stop(self) -> None:
        """No more slots."""
        with self._room:
            self._stopped = True
            self._room.notify_all()

    def held(self) -> list[Job]:
        with self._room:
            return [*self._running, *self._unsettled]

    def running(self) -> list[Job]:
        with self._room:
            return list(self._running)

    @property
    def empty(self) -> bool:
        return not self._reserved and not self._running and not self._unsettled

    def _free(self) -> int:
        claimed = self._reserved + len(self._running)
        return max(
            min(self._concurrency, UNSETTLED + self._concurrency - len(self._unsettled)) - claimed,
            0,
        )

    def _changed(self) -> None:
        self._room.notify()
        if self._stopped:
            self._emptied()

"""Actions: settling and renewing, with leases that hold and leases that do not."""

from __future__ import annotations

from typing import Any

import mqlite
from mqlite.model import Lease

from . import settling
from .acting import Acting, Call
from .strategies import milliseconds

_DELAYED = ("abandon", "snooze")
_LIKE = {"complete": "defer", "abandon": "snooze", "snooze": "abandon"}
"""The verb that is easily taken for another."""


class Settlement(Acting):
    def settle(
        self, verb: str, pick: int, twist: str, delay: int, reason: str, description: str
    ) -> None:
        arguments = _arguments(verb, delay, reason, description)
        self._settle((verb, *self.lease(pick, twist), arguments))

    def work(self, verb: str | None, pick: int, delay: int) -> None:
        """Settle a message that is held, if one is; more often than not in the same way."""
        verb = verb or self.favourite
        arguments = _arguments(verb, delay)
        self._settle((verb, *self.held(pick), arguments))

    def settle_again(self, pick: int, change: str | None) -> None:
        if not self.settled:
            return
        verb, name, seq, token, arguments = self.settled[-1 - pick % len(self.settled)]
        if change == "verb":
            verb = _LIKE.get(verb, "complete")
            arguments = arguments if verb in _DELAYED else ()
        elif change == "arguments" and verb in _DELAYED:
            arguments = (arguments[0] + 1,)
        elif change == "arguments" and verb == "reject":
            arguments = (arguments[0] + arguments[1], "")
        elif change == "seq":
            seq += 1
        self._settle((verb, name, seq, token, arguments))

    def _settle(self, call: Call) -> None:
        verb, name, seq, token, arguments = call
        options: dict[str, Any] = {}
        if verb in _DELAYED:
            options = {"delay": milliseconds(arguments[0]), "snooze": verb == "snooze"}
        elif verb == "reject":
            options = dict(zip(("reason", "description"), arguments, strict=True))
        method = getattr(self.mq, "abandon" if verb == "snooze" else verb)
        self.both(
            lambda: method(name, seq, token, **options),
            lambda _: getattr(settling, verb)(self.world, name, seq, token, *arguments),
        )
        self.settled.append(call)

    def complete_batch(self, name: str, some: list[int], spoilt: list[str]) -> None:
        leases = self._leases(some, spoilt)
        self.both(
            lambda: [(r.seq_number, r.ok) for r in self.mq.complete_batch(name, leases)],
            lambda _: settling.complete_batch(self.world, name, leases),
        )
        self.settled += [("complete", name, *lease, ()) for lease in leases]

    def renew_batch(self, name: str, some: list[int], spoilt: list[str]) -> None:
        leases = self._leases(some, spoilt)
        self.both(
            lambda: list(map(_renewal, self.mq.renew_batch(name, leases))),
            lambda _: settling.renew_batch(self.world, name, leases),
        )

    def _leases(self, some: list[int], spoilt: list[str]) -> list[Lease]:
        """Leases of any queue, each perhaps several times, some spoilt."""
        twists = spoilt + ["none"] * len(some)
        return [self.lease(pick, twist)[1:] for pick, twist in zip(some, twists, strict=False)]

    def renew(self, pick: int, twist: str) -> None:
        lease = self.lease(pick, twist) if twist != "none" else self.held(pick)
        self.both(
            lambda: _renewal(self.mq.renew(*lease)), lambda _: settling.renew(self.world, *lease)
        )


def _arguments(verb: str, delay: int, reason: str = "", description: str = "") -> tuple[Any, ...]:
    if verb in _DELAYED:
        return (delay,)
    return (reason, description) if verb == "reject" else ()


def _renewal(result: mqlite.RenewResult) -> tuple[int, bool, int, int]:
    return result.seq_number, result.ok, result.locked_until_ms, result.lease_ms

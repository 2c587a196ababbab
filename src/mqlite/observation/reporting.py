"""Tells the log of failures, interruptions and recoveries.

Each is a `logging` record whose message is a line of `name=value` pairs, and whose
`diagnostic` attribute holds the same as a dict, for handlers that keep it.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

from msgspec.structs import asdict

from mqlite.observation.redaction import redacted
from mqlite.observation.schema import ErrorDetail

ATTRIBUTE: Final = "diagnostic"
EVERY_S: Final = 1.0
"""Failures of one kind are told of once in so long: an overloaded queue fails by the
thousand, and each record in the private file waits for the disk."""

_REMEMBERED: Final = 256


class Reporter:
    """Writes to the logger of one queue. Any thread may use it."""

    def __init__(self, logger: logging.Logger, now: Callable[[], float] = monotonic) -> None:
        self._logger = logger
        self._now = now
        self._lock = threading.Lock()
        self._told: OrderedDict[tuple[str, str], tuple[float, int]] = OrderedDict()

    def failed(
        self, event: str, failure: ErrorDetail, error: BaseException, **subject: str
    ) -> None:
        """What failed, with the error's own words, redacted; a traceback, redacted too, where
        nobody foresaw the error."""
        fields = self._fields(logging.ERROR, event, failure, subject)
        if fields is not None:
            unforeseen = failure.category == "other"
            fields["provider"] = redacted(_words(error))
            self._write(logging.ERROR, fields, _stand_in(error) if unforeseen else None)

    def interrupted(self, event: str, interruption: ErrorDetail, **subject: str) -> None:
        """What did not come to its end because somebody wanted it so."""
        fields = self._fields(logging.INFO, event, interruption, subject)
        if fields is not None:
            self._write(logging.INFO, fields)

    def recovered(self, task: str, failures: int, at_ms: int) -> None:
        """A task is well again after so many failed passes in a row."""
        self._write(
            logging.WARNING,
            {"event": "maintenance.recovered", "at_ms": at_ms, "task": task, "failures": failures},
        )

    def _fields(
        self, level: int, event: str, found: ErrorDetail, subject: dict[str, str]
    ) -> dict[str, Any] | None:
        """What the record says; None where there is to be none."""
        if not self._logger.isEnabledFor(level):
            return None
        omitted = self._omitted(event, found.fingerprint)
        if omitted is None:
            return None
        known = {name: value for name, value in asdict(found).items() if value is not None}
        fields = {"event": event, "at_ms": found.at_ms, **subject, **known}
        return fields | {"omitted": omitted} if omitted else fields

    def _omitted(self, event: str, fingerprint: str) -> int | None:
        """How many of this kind were left out since the last that was told of; None where
        this one is left out too."""
        kind = event, fingerprint
        now = self._now()
        with self._lock:
            at, omitted = self._told.pop(kind, (-EVERY_S, 0))
            if now - at < EVERY_S:
                self._told[kind] = at, omitted + 1
                return None
            self._told[kind] = now, 0
            if len(self._told) > _REMEMBERED:
                self._told.popitem(last=False)
        return omitted

    def _write(
        self, level: int, fields: dict[str, Any], trace: BaseException | None = None
    ) -> None:
        pairs = (f"{name}={_shown(value)}" for name, value in fields.items() if name != "event")
        line = f"{fields['event']} {' '.join(pairs)}"
        self._logger.log(level, "%s", line, exc_info=trace, extra={ATTRIBUTE: fields})


def _words(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}"
    cause = error.__cause__
    return text if cause is None else f"{text} (from {type(cause).__name__}: {cause})"


def _stand_in(error: BaseException) -> BaseException:
    """An error with the same name, frames and causes, whose words are redacted: a traceback
    ends with them."""
    kind = type(error)
    instead: BaseException = type(kind.__name__, (Exception,), {"__module__": kind.__module__})(
        redacted(str(error))
    )
    if error.__cause__ is not None:
        instead.__cause__ = _stand_in(error.__cause__)
    return instead.with_traceback(error.__traceback__)


def _shown(value: str | int) -> str:
    text = str(value)
    plain = text.isprintable() and " " not in text and '"' not in text
    return text if plain and text else json.dumps(text)

"""All that one open queue measures of itself."""

from __future__ import annotations

import logging
from collections.abc import Callable

from mqlite.observation.effects import EffectMeter
from mqlite.observation.maintenance import MaintenanceMeter
from mqlite.observation.reporting import Reporter
from mqlite.observation.storage import StorageMeter


class Recorder:
    """Lives as long as its store; counts from zero on. Times are of the store's clock."""

    def __init__(
        self,
        now: Callable[[], int],
        name_of: Callable[[int], str | None],
        logger: logging.Logger,
    ) -> None:
        """`now` is in epoch milliseconds; `name_of` tells the name of a queue by its id, if
        that takes no look into the database. Failures are told to the `logger`."""
        reporter = Reporter(logger)
        self.started_at_ms = now()
        self.effects = EffectMeter(name_of)
        self.storage = StorageMeter(now, reporter)
        self.maintenance = MaintenanceMeter(now, reporter)

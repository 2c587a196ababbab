"""Looks at the store from outside: does it answer, how large is it, who waits for it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NamedTuple

from mqlite.errors import Unavailable
from mqlite.observation.schema import Pool
from mqlite.observation.storage import StorageMeter
from mqlite.stores.sqlite.admission import Line
from mqlite.stores.sqlite.connection import pragma
from mqlite.stores.sqlite.housekeeping import Housekeeper
from mqlite.stores.sqlite.location import bytes_on_disk
from mqlite.stores.sqlite.reader import Reader
from mqlite.stores.sqlite.writer import Writer

PROBE_WAIT_S: Final = 1.0
"""For the connection. Who probes has waited before, to count what is there, and a scrape that
takes 10 seconds is given up."""


class Probe(NamedTuple):
    """What a look shows. `ping_s` is None where the database did not answer, and so is
    `free_pages`; the sizes of the files where there are none."""

    ping_s: float | None
    free_pages: int | None
    file_bytes: int | None
    log_bytes: int | None


def probe(
    look: Callable[[Callable[[sqlite3.Connection], Any]], Any],
    path: Path | None,
    house: Housekeeper | None,
    meter: StorageMeter,
) -> Probe:
    """A trivial read, and the sizes. `look` asks a connection."""
    free_pages: int | None = None
    ping_s: float | None = None
    started = perf_counter()
    try:
        free_pages = look(partial(pragma, name="freelist_count"))
    except Unavailable as error:
        meter.failed("read", "probe", started, error)
    else:
        meter.succeeded("read", started)
        ping_s = perf_counter() - started
    size = _size(path)
    log = None if house is None or size is None else house.log_bytes()
    return Probe(ping_s, free_pages, size, log)


def _size(path: Path | None) -> int | None:
    """The bytes on disk; None where there is no file, or somebody has taken it away."""
    try:
        return bytes_on_disk(path) if path is not None and path.exists() else None
    except OSError:
        return None


def pool(line: Line, writer: Writer, readers: Sequence[Reader], house: Housekeeper | None) -> Pool:
    """The connections, and the waits for the one that writes."""
    number = 1 + len(readers) + (house is not None)
    in_use = writer.busy + sum(reader.busy for reader in readers)
    return Pool(
        max_open=number,
        open=number,
        in_use=in_use,
        idle=number - in_use,
        waits=line.waits,
        wait_duration_seconds=line.waited_s,
    )

"""`mqlite worker`: runs the handlers that a module declares."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from typing import Any, Final

import msgspec

import mqlite
from mqlite.cli import streams
from mqlite.cli.command import positional, store_command
from mqlite.cli.connect import Session
from mqlite.cli.streams import CommandError
from mqlite.handles import AsyncHandle, SyncHandle
from mqlite.receiver.workers import Workers

_EVERY: Final = 0.5
_OURS: Final = os.path.dirname(mqlite.__file__)
_FORM: Final = "%(asctime)s %(levelname)s %(message)s"


@store_command("worker", help="Run the workers that a module declares until it is stopped.")
@positional("app", "<module:name>")
def worker(session: Session, app: str) -> None:
    found = load(app)
    workers = found if isinstance(found, Workers) else found.workers
    if not list(workers):
        raise CommandError(f"{app} declares no workers")
    with _shown(workers):
        if isinstance(found, Workers):
            finished = _run_opened(session, found)
        else:
            finished = _run_own(found)
    _summarise(session, workers)
    if not finished:
        raise CommandError("some handlers did not finish in time; their messages were handed back")


def load(app: str) -> Workers | SyncHandle | AsyncHandle:
    """What `module:name` stands for: `Workers`, or a queue with workers of its own. Modules are
    looked for in the current directory first. Raises CommandError."""
    module, colon, name = app.partition(":")
    if not (module and colon and name):
        raise CommandError(f"give the workers as <module:name>, such as tasks:workers, not {app!r}")
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = import_module(module)
    except (Exception, SystemExit) as error:
        raise CommandError(f"cannot import {module}: {_reason(error)}") from None
    try:
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise CommandError(f"{module} has no {name!r}") from None
    if not isinstance(found, Workers | SyncHandle | AsyncHandle):
        kind = type(found).__name__
        raise CommandError(
            f"{app} is of type {kind}; it must be mqlite.Workers, or a queue with workers"
        )
    return found


def _reason(error: BaseException) -> str:
    """The failure and the innermost place that is not ours, in one line."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(("<", _OURS)) and "importlib" not in file:
            place = f" ({os.path.basename(file)}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return f"{type(error).__name__}: {error}{place}"


def _run_opened(session: Session, workers: Workers) -> bool:
    """Over the database or the broker of the environment and the flags."""
    if not workers.needs_loop:
        with session.connect() as mq:
            return workers.run(mq)

    async def main() -> bool:
        async with await session.connect_async() as mq:
            return await workers.run_async(mq, handle_signals=True)

    return asyncio.run(main())


def _run_own(mq: SyncHandle | AsyncHandle) -> bool:
    """Over the queue that the module has opened; closes it."""
    if isinstance(mq, AsyncHandle):
        return asyncio.run(_run_own_async(mq))
    with closing(mq):
        return mq.run_workers()


async def _run_own_async(mq: AsyncHandle) -> bool:
    try:
        return await mq.run_workers(handle_signals=True)
    finally:
        await mq.close()


class _Screen(logging.Handler):
    """Log lines above one line of live counters."""

    def __init__(self, workers: Workers) -> None:
        super().__init__()
        self._workers = workers
        self._ended = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        streams.note(f"\r\x1b[K{self.format(record)}")

    def run(self) -> None:
        while not self._ended.wait(_EVERY):
            line = _line(self._workers)[: shutil.get_terminal_size().columns - 1]
            self.acquire()
            try:
                print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
            finally:
                self.release()

    def end(self) -> None:
        self._ended.set()


@contextmanager
def _shown(workers: Workers) -> Iterator[None]:
    """Tell on standard error what happens: live on a terminal, else in log lines."""
    live = _Screen(workers) if sys.stderr.isatty() else None
    handler = live or logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_FORM))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    queues = ", ".join(each.queue for each in workers)
    logging.getLogger(__name__).info("working on %s", queues)
    if live is None:
        yield
        return
    thread = threading.Thread(target=live.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        live.end()
        thread.join()
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _line(workers: Workers) -> str:
    running = workers.running
    parts = []
    for queue, counts in workers.counts.items():
        told = [f"{running[queue]} running", f"{counts.completed} completed"]
        others = msgspec.structs.asdict(counts)
        del others["completed"]
        told += [f"{number} {name}" for name, number in others.items() if number]
        parts.append(f"{queue}: {', '.join(told)}")
    return "  |  ".join(parts)


def _summarise(session: Session, workers: Workers) -> None:
    if session.out.json:
        session.out.document(workers.counts)
        return
    for queue, counts in workers.counts.items():
        told = " ".join(f"{name}={n}" for name, n in msgspec.structs.asdict(counts).items() if n)
        session.out.line(f"{queue}: {told or 'nothing to do'}")

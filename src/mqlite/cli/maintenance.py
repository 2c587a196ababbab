"""Commands on the store as a whole: status, vacuum, doctor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import mqlite
from mqlite.cli.command import flag, store_command
from mqlite.cli.connect import Session
from mqlite.cli.environment import embedded
from mqlite.cli.output import Progress
from mqlite.cli.streams import CommandError
from mqlite.wire import StatusResponse

_MIB: Final = 1024 * 1024
_SYNCHRONOUS: Final[dict[str | int, str]] = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}
"""As SQLite numbers them."""
_LOCAL_ONLY: Final = (
    "{} works on the local database file, not through an endpoint: stop the broker, then give"
    " --endpoint= and MQLITE_DB"
)


@store_command("status", help="Describe the store: where it is, its size, what it holds.")
def status(session: Session) -> None:
    report = _report(session)
    if session.out.json:
        session.out.document(report)
    else:
        for label, value in _facts(report, broker=bool(session.target.endpoint)):
            session.out.line(f"{label + ':':<15}{value}")
    if not _answers(report):
        raise CommandError(
            f"the database {report.location} does not answer a read; 'The database fails' in"
            " docs/operations.md says how to go on"
        )


@store_command(
    "vacuum",
    help="Give free space in the database file back to the disk. Local only: stop the broker"
    " first.",
)
@flag("--full", help="rewrite the whole file, which locks it meanwhile")
def vacuum(session: Session, full: bool | None) -> None:
    if session.target.endpoint:
        raise CommandError(_LOCAL_ONLY.format("vacuum"))
    with embedded() as mq, Progress() as progress:
        store = mq.status()
        progress.show(f"vacuuming {_mib(store.db_size_bytes)}")
        mq.vacuum(full=bool(full))
    # Only closing folds the write-ahead log back into the file.
    before, after = store.db_size_bytes, _footprint(store.location)
    freed, grew = max(before - after, 0), max(after - before, 0)
    if session.out.json:
        session.out.document(
            {
                "action": "vacuum",
                "before_bytes": before,
                "after_bytes": after,
                "freed_bytes": freed,
                "grew_bytes": grew,
            }
        )
        return
    change = f"grew by {_mib(grew)}" if grew else f"freed {_mib(freed)}"
    kind = "full" if full else "incremental"
    session.out.ok(f"{kind} vacuum {_mib(before)} -> {_mib(after)} ({change})")


@store_command(
    "doctor",
    help="Check what must always hold in the database file. Local only: stop the broker first.",
)
def doctor(session: Session) -> None:
    if session.target.endpoint:
        raise CommandError(_LOCAL_ONLY.format("doctor"))
    with embedded() as mq:
        problems = mq.examine()
    if session.out.json:
        session.out.document({"problems": problems})
    elif not problems:
        session.out.ok("no problems found")
    if problems:
        raise CommandError("; ".join(problems))


def _report(session: Session) -> StatusResponse:
    if session.target.endpoint:
        with closing(session.open_client()) as client:
            return client.broker_status()
    with embedded() as mq:
        return StatusResponse.of(mq.status(), version=mqlite.__version__, uptime_ms=0, auth=False)


def _answers(report: StatusResponse) -> bool:
    return report.ping_ms >= 0


def _facts(report: StatusResponse, *, broker: bool) -> Iterator[tuple[str, str]]:
    """What is known: a broker from before an addition does not tell it, and one whose database
    does not answer has counted nothing."""
    if report.version:
        yield "version", report.version
    yield "backend", report.backend
    yield "location", report.location
    yield "schema", report.schema_version
    yield "ping", f"{report.ping_ms}ms" if _answers(report) else "failed"
    if not report.remote and report.db_size_bytes:
        yield "size", _mib(report.db_size_bytes)
    if report.pragmas.get("journal_mode") == "wal":
        yield "log", _mib(report.wal_size_bytes)
    if (level := report.pragmas.get("synchronous")) is not None:
        yield "synchronous", _SYNCHRONOUS.get(level, str(level))
    if _answers(report):
        yield "queues", str(report.queues)
        yield "subscriptions", str(report.subscriptions)
    if broker:
        yield "uptime", f"{report.uptime_ms // 1000}s"
        yield "auth", "on" if report.auth else "off"
    for warning in report.warnings:
        yield "warning", warning


def _footprint(location: str) -> int:
    files = (Path(location + suffix) for suffix in ("", "-wal", "-shm"))
    return sum(file.stat().st_size for file in files if file.exists())


def _mib(size: int) -> str:
    return f"{size / _MIB:.2f} MiB"

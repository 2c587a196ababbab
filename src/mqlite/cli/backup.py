"""`mqlite backup`: a snapshot of the database file, and a look at one."""

from __future__ import annotations

from mqlite.cli import environment, streams
from mqlite.cli.command import flag, positional, store_command
from mqlite.cli.connect import Session
from mqlite.cli.output import Progress
from mqlite.cli.streams import CommandError


@store_command(
    "backup",
    help="Write a verified snapshot of the database of MQLITE_DB to a new file, and its SHA-256"
    " beside it. Other processes, a broker among them, may work on the database meanwhile.",
)
@flag("--verify", help="check a snapshot that was taken before, by its checksum and as a database")
@positional("file", "<file>")
def backup(session: Session, file: str, verify: bool | None) -> None:
    if session.target.endpoint and not verify:
        raise CommandError(
            "backup reads the local database file, not through an endpoint; a broker may be"
            " serving it: give --endpoint= and MQLITE_DB"
        )
    from mqlite.stores.sqlite import backup as snapshots
    from mqlite.stores.sqlite.location import parse_location

    with Progress() as progress:
        if verify:
            progress.show(f"verifying {file}")
            done = snapshots.verify(parse_location(file))
        else:
            progress.show(f"writing {file}")
            done = snapshots.take(parse_location(environment.database()), parse_location(file))
    for table in done.orphaned:
        streams.warn(f"the application's table {table} has rows that refer to missing rows")
    session.out.done(
        action="verify" if verify else "backup",
        file=str(done.path),
        bytes=done.size,
        sha256=done.sha256,
    )

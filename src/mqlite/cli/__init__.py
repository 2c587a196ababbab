"""The `mqlite` command: which commands there are, and what their outcome means to a shell."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final, NamedTuple

import mqlite
from mqlite.cli import streams
from mqlite.cli.hints import nearest
from mqlite.cli.sigterm import Sigterm

OK: Final = 0
FAILED: Final = 1
MISUSED: Final = 2
TERMINATED: Final = 143
"""By SIGTERM, as a shell says it: 128 and the number of the signal."""


class Entry(NamedTuple):
    """A command in the usage text; its target, `module.name`, is imported only
    when it runs."""

    name: str
    target: str
    summary: str


GROUPS: Final[dict[str, tuple[Entry, ...]]] = {
    "Messages": (
        Entry("send", "messages.send", "send a message, or many, to a queue or topic"),
        Entry("receive", "receive.receive", "receive messages and complete what was printed"),
        Entry("peek", "messages.peek", "browse messages without locking them"),
        Entry("schedule", "messages.schedule", "send a message for later delivery"),
        Entry("cancel", "messages.cancel", "delete a scheduled message"),
        Entry(
            "receive-deferred",
            "receive.receive_deferred",
            "lock deferred messages by sequence number",
        ),
    ),
    "Settling": (
        Entry("complete", "settle.complete", "done: remove a locked message"),
        Entry("abandon", "settle.abandon", "give a locked message back for another delivery"),
        Entry("release", "settle.release", "give a locked message back as if not delivered"),
        Entry("reject", "settle.reject", "dead-letter a locked message"),
        Entry("defer", "settle.defer", "set a locked message aside"),
        Entry("renew", "settle.renew", "extend the lease of a locked message"),
    ),
    "Queues and topics": (
        Entry("create-queue", "queues.create_queue", "create a queue, or change its settings"),
        Entry("delete-queue", "queues.delete_queue", "delete an empty queue"),
        Entry("pause", "queues.pause", "stop deliveries from a queue; it still accepts messages"),
        Entry("resume", "queues.resume", "deliver from a paused queue again"),
        Entry("list", "queues.list_queues", "list queues and subscriptions"),
        Entry("metrics", "queues.metrics", "count the messages of a queue by state"),
        Entry("subscribe", "topics.subscribe", "create a subscription, or replace its filter"),
        Entry("create-subscription", "topics.subscribe", "the same as subscribe"),
        Entry("unsubscribe", "topics.unsubscribe", "delete a subscription and its empty queue"),
        Entry(
            "list-subscriptions",
            "topics.list_subscriptions",
            "list subscriptions with topic and filter",
        ),
        Entry("test-filter", "topics.test_filter", "try a filter, with or without a message"),
    ),
    "Dead letters": (
        Entry("redrive", "deadletters.redrive", "make dead letters active again"),
        Entry("purge-dlq", "deadletters.purge_dlq", "delete dead letters"),
    ),
    "Access keys": (
        Entry("key create", "key.create", "create an access key and print its token"),
        Entry("key list", "key.list_keys", "list access keys, without their tokens"),
        Entry("key revoke", "key.revoke", "let an access key in no more"),
    ),
    "Operation": (
        Entry("serve", "serve.serve", "run a broker on the database"),
        Entry("worker", "worker.worker", "run the message handlers that a module declares"),
        Entry("mcp", "mcp.mcp", "offer a broker's operations as tools to an AI agent"),
        Entry("status", "maintenance.status", "describe the store"),
        Entry("observe", "observe.observe", "print every count and measurement, as JSON"),
        Entry(
            "vacuum", "maintenance.vacuum", "give free space in the database file back to the disk"
        ),
        Entry("backup", "backup.backup", "write a verified snapshot of the database file"),
        Entry("doctor", "maintenance.doctor", "check what must always hold in the database file"),
        Entry("version", "", "print the version"),
        Entry("help", "", "print this text"),
    ),
}
COMMANDS: Final = {entry.name: entry for group in GROUPS.values() for entry in group}

_META: Final = {
    **dict.fromkeys(("version", "-v", "-version", "--version"), "version"),
    **dict.fromkeys(("help", "-h", "-help", "--help"), "help"),
}
_INTRODUCTION: Final = """\
Usage: mqlite <command> [flags] [arguments]

A durable message queue on one SQLite file. Commands open the database named by
MQLITE_DB (default file:./mq.db); with MQLITE_ENDPOINT or --endpoint they talk to
a running broker instead. 'mqlite <command> -h' lists the flags of a command.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and answer its exit code: 0, 1 (it failed), 2 (it was misused), or 143
    (SIGTERM ended it)."""
    streams.prepare()
    failure: streams.CommandError | None = None
    code = OK
    with Sigterm() as sigterm:
        try:
            code = _dispatch(list(sys.argv[1:] if argv is None else argv))
            streams.flush()
        except KeyboardInterrupt:
            failure = streams.CommandError("terminated" if sigterm.came else "interrupted")
        except streams.CommandError as error:
            failure = error
    # Told when a signal can no longer come between.
    if isinstance(failure, streams.OutputLost):
        streams.discard_output()
    if failure is not None:
        code = _failed(str(failure), failure.detail)
    return TERMINATED if sigterm.came else code


def _dispatch(args: list[str]) -> int:
    if not args:
        streams.error("no command given")
        streams.write(usage())
        return MISUSED
    name, *rest = args
    if name in _META:
        return _meta(_META[name], rest)
    if rest and f"{name} {rest[0]}" in COMMANDS:
        name, *rest = f"{name} {rest[0]}", *rest[1:]
    if name not in COMMANDS:
        if _longer(name) and rest and _META.get(rest[0]) == "help":
            streams.note(_usage_of(name))
            return OK
        return _unknown(name)
    module, _, attribute = COMMANDS[name].target.partition(".")
    from mqlite.cli import command

    return command.run(getattr(import_module(f"mqlite.cli.{module}"), attribute), name, rest)


def _meta(name: str, rest: list[str]) -> int:
    if rest:
        known = rest[0] in COMMANDS or _longer(rest[0])
        instead = f"; try 'mqlite {rest[0]} -h'" if name == "help" and known else ""
        return _failed(f"{name} takes no arguments, got {rest[0]!r}{instead}")
    streams.write(f"mqlite {mqlite.__version__}\n" if name == "version" else usage())
    return OK


def _failed(message: str, detail: str = "") -> int:
    streams.error(message, detail)
    return FAILED


def _unknown(name: str) -> int:
    if longer := _longer(name):
        streams.error(f"{name!r} needs to be one of {', '.join(longer)}")
    elif name.startswith("-"):
        streams.error(f"the command comes before its flags, got {name!r}")
    else:
        streams.error(f"unknown command {name!r}{nearest(name, COMMANDS)}")
    streams.note("'mqlite help' lists the commands")
    return MISUSED


def _longer(name: str) -> list[str]:
    """The commands of two words of which `name` is the first."""
    return [known for known in COMMANDS if known.startswith(f"{name} ")]


def _usage_of(name: str) -> str:
    lines = [f"Usage: mqlite {name} <command> [flags]", ""]
    lines.extend(_summary(COMMANDS[known]) for known in _longer(name))
    return "\n".join([*lines, "", f"'mqlite {name} <command> -h' lists the flags of a command."])


def _summary(entry: Entry) -> str:
    return f"  {entry.name:<20} {entry.summary}"


def usage() -> str:
    """The text of `mqlite help`; it names every command."""
    lines = [_INTRODUCTION]
    for title, entries in GROUPS.items():
        lines.append(f"{title}:")
        lines.extend(map(_summary, entries))
        lines.append("")
    return "\n".join(lines)

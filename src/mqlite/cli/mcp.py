"""`mqlite mcp`: a broker's operations as tools for an AI agent, over standard input and output."""

from __future__ import annotations

import os
import signal
import sys

from mqlite import cli
from mqlite.cli.command import command
from mqlite.cli.connect import sendable
from mqlite.cli.streams import CommandError
from mqlite.links import install_hint


def main() -> int:
    """The `mqlite-mcp` program."""
    return cli.main(["mcp", *sys.argv[1:]])


@command(
    "mcp",
    help="Serve the broker of MQLITE_ENDPOINT to an MCP host on standard input and output. The"
    " host starts this program; calls follow the permissions of MQLITE_TOKEN.",
)
def mcp() -> None:
    from mqlite.client.target import Target

    try:
        from mqlite.mcp.broker import Broker, endpoint_setting
        from mqlite.mcp.server import serve
    except ImportError as error:  # also where the SDK is older
        raise CommandError(
            f"this command needs the mcp extra: {install_hint('mcp')} ({error})"
        ) from None

    endpoint = endpoint_setting(os.environ.get("MQLITE_ENDPOINT", ""))
    token = sendable(os.environ.get("MQLITE_TOKEN", ""), "MQLITE_TOKEN")
    broker = Broker(Target(endpoint, token, {}))
    # The thread that reads the protocol cannot be interrupted: let a signal end the process.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    serve(broker)

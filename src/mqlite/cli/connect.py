"""Which store a command talks to, and with which credential."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from mqlite.api import MQ
from mqlite.arguments import bearer_token
from mqlite.cli import environment, streams
from mqlite.cli.output import Output
from mqlite.cli.streams import CommandError
from mqlite.endpoint import holds_token, same_endpoint, without_credentials

if TYPE_CHECKING:
    from mqlite.client import AsyncClient, Client
    from mqlite.embedded import AsyncEmbedded


class Target(NamedTuple):
    """A broker and its token, or the embedded database where `endpoint` is empty."""

    endpoint: str
    token: str

    def __repr__(self) -> str:
        return f"Target({without_credentials(self.endpoint)!r})"


class Session(NamedTuple):
    """What a command works with: where it is sent, and where it prints."""

    target: Target
    out: Output

    @contextmanager
    def connect(self) -> Iterator[MQ]:
        """The store, open until the block ends."""
        opened = closing(self.open_client()) if self.target.endpoint else environment.embedded()
        with opened as mq:
            yield mq

    async def connect_async(self) -> AsyncEmbedded | AsyncClient:
        """The store for async callers, to be closed by the caller. Raises CommandError where
        a broker is named and the client extra is missing."""
        if not self.target.endpoint:
            from mqlite.embedded import AsyncEmbedded

            return AsyncEmbedded(environment.open_embedded().core)
        from mqlite.client import connect_async

        try:
            return await connect_async(self.target.endpoint, token=self.target.token)
        except ImportError as error:
            raise CommandError(str(error)) from None

    def open_client(self) -> Client:
        """A client of the broker that `target` names."""
        from mqlite.client import Client

        return Client(self.target.endpoint, token=self.target.token)


def choose_target(endpoint: str | None, token: str | None) -> Target:
    """Where a command goes, by its flags (None: not given) and the environment.

    The environment's token belongs to the environment's endpoint: another broker named by
    `--endpoint` does not get it.
    """
    from_environment = os.environ.get("MQLITE_ENDPOINT", "")
    chosen = from_environment if endpoint is None else endpoint
    if not chosen:
        return Target("", "")
    if token is not None:
        return Target(chosen if token else without_credentials(chosen), sendable(token, "--token"))
    ambient = os.environ.get("MQLITE_TOKEN", "")
    if ambient and endpoint is not None and not same_endpoint(endpoint, from_environment):
        if not holds_token(endpoint):
            streams.warn(
                "MQLITE_TOKEN is not sent to this endpoint, which is not the one MQLITE_ENDPOINT"
                " names; pass --token to authenticate here"
            )
        ambient = ""
    return Target(chosen, sendable(ambient, "MQLITE_TOKEN"))


def sendable(token: str, name: str) -> str:
    """The token, if there is one. Raises InvalidArgument naming where it came from."""
    return bearer_token(token, name) if token else ""

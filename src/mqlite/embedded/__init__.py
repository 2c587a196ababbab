"""The in-process queue: the engine on a store, without a server."""

from mqlite.embedded.asynchronous import AsyncEmbedded, open_async
from mqlite.embedded.joining import Joined, Outbox, outbox
from mqlite.embedded.preparation import configure
from mqlite.embedded.synchronous import Embedded, open_queue as open
from mqlite.embedded.transaction import AsyncTransaction, Transaction

__all__ = [
    "AsyncEmbedded",
    "AsyncTransaction",
    "Embedded",
    "Joined",
    "Outbox",
    "Transaction",
    "configure",
    "open",
    "open_async",
    "outbox",
]

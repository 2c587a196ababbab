"""The in-process queue: the engine on a store, without a server."""

from mqlite.embedded.asynchronous import AsyncEmbedded, open_async
from mqlite.embedded.joining import outbox
from mqlite.embedded.preparation import configure
from mqlite.embedded.synchronous import Embedded, open_queue as open

__all__ = ["AsyncEmbedded", "Embedded", "configure", "open", "open_async", "outbox"]

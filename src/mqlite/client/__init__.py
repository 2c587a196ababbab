"""The HTTP clients: the operations of `MQ` and `AsyncMQ` against a running broker."""

from typing import TYPE_CHECKING, Any

from mqlite.client.sync import Client, connect

if TYPE_CHECKING:
    from mqlite.client.asynchronous import AsyncClient, connect_async

__all__ = ["AsyncClient", "Client", "connect", "connect_async"]


def __getattr__(name: str) -> Any:
    # aiohttp takes long to import, and programs without tasks do not need it.
    if name not in __all__:
        raise AttributeError(f"module 'mqlite.client' has no attribute {name!r}")
    from mqlite.client import asynchronous

    value = globals()[name] = getattr(asynchronous, name)
    return value


def __dir__() -> list[str]:
    return __all__

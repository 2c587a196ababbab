"""The HTTP client: the operations of `MQ` against a running broker."""

from mqlite.client.sync import Client

__all__ = ["Client"]

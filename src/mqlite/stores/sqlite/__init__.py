"""The SQLite store: one file or memory, one writer, group commit."""

from mqlite.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]

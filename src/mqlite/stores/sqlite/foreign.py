"""Notices what other connections committed, and takes over what they have to tell."""

from __future__ import annotations

import logging
import sqlite3
from time import monotonic
from typing import Final

from mqlite.engine.steps import Changed, Effect
from mqlite.stores.callers import any_prepared
from mqlite.stores.effects import decode
from mqlite.stores.names import NameCache
from mqlite.stores.sqlite.connection import LOG_RESET_WARNING, has_log_reset_bug

PREPARED: Final = "prepared "
"""Stands before the effects of a transaction on a connection that leaves checkpoints to us."""

_PREPARED: Final = PREPARED.encode()
_VERSION: Final = "PRAGMA data_version"
_SELECT: Final = "SELECT id, CAST(effects AS BLOB) FROM mqlite_effects ORDER BY id"
"""As bytes: text that is no UTF-8 would not be read, and stop every transaction."""
_DELETE: Final = "DELETE FROM mqlite_effects WHERE id <= ?"
_NEAR_S: Final = 1.0


class ForeignCommits:
    """Looks at the writer connection's `data_version`, which moves when another
    connection has committed. Used by the holder of the writer's turn."""

    def __init__(self, connection: sqlite3.Connection, logger: logging.Logger) -> None:
        self.endangered = False
        """Whether a connection has committed that is not known to leave checkpoints to us,
        on a SQLite where that matters."""
        self._execute = connection.cursor().execute
        self._logger = logger
        self.collected = False
        """Whether the open transaction has found something to take over."""
        self._known = -1
        self._collected = -1
        self._collected_unprepared = False
        self._prepared_elsewhere = False
        self._near_until = float("-inf")
        self._recent_until = float("-inf")

    def expect(self) -> None:
        """Another connection is about to commit: look often for a second."""
        self._near_until = monotonic() + _NEAR_S

    @property
    def near(self) -> bool:
        """Whether another connection is likely to commit: it was announced, or seen to,
        within the last second."""
        return monotonic() < self._near_until

    @property
    def recent(self) -> bool:
        """Whether another connection was seen to commit within the last second."""
        return monotonic() < self._recent_until

    def pending(self) -> bool:
        """Whether another connection has committed since the last look."""
        return bool(self._version() != self._known)

    def collect(self, effects: list[Effect], names: NameCache) -> None:
        """Inside a writing transaction: move the effects of foreign commits into it."""
        version = self._version()
        if version == self._known:
            return
        self._collected = version
        self.collected = True
        rows = self._execute(_SELECT).fetchall()
        self._collected_unprepared = self._is_unprepared([text for _, text in rows])
        if not rows:
            return
        for id_, text in rows:
            effects.extend(self._decoded(id_, text.removeprefix(_PREPARED)))
        for effect in effects:
            if isinstance(effect, Changed):
                names.changed(effect.name)
        self._execute(_DELETE, (rows[-1][0],))

    def committed(self) -> None:
        """The transaction that collected is committed."""
        self.collected = False
        if self._known != -1:
            self._near_until = self._recent_until = monotonic() + _NEAR_S
            if self._collected_unprepared:
                self._warn()
        self._known = self._collected

    def rolled_back(self) -> None:
        """The transaction that collected is undone: its rows are there again."""
        self.collected = False

    def _is_unprepared(self, texts: list[bytes]) -> bool:
        if texts:
            prepared = all(text.startswith(_PREPARED) for text in texts)
            self._prepared_elsewhere |= prepared
            return not prepared
        # Nothing tells whose commit this was: it is taken for that of a prepared connection
        # where one is known.
        return not self._prepared_elsewhere and not any_prepared()

    def _warn(self) -> None:
        if not self.endangered and has_log_reset_bug(sqlite3.sqlite_version_info):
            self.endangered = True
            self._logger.warning(LOG_RESET_WARNING)

    def _version(self) -> int:
        version: int = self._execute(_VERSION).fetchone()[0]
        return version

    def _decoded(self, id_: int, text: bytes) -> list[Effect]:
        try:
            return decode(text)
        except ValueError:
            self._logger.exception("the effects of foreign commit %d are unreadable", id_)
            return []

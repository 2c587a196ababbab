"""What a broker tells of itself and its queue: `Observe`, and `/metrics`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from mqlite import errors
from mqlite.broker import metrics as prometheus
from mqlite.broker.asgi import Header
from mqlite.broker.auth import EXEMPT, Refused
from mqlite.broker.exposition import CONTENT_TYPE
from mqlite.broker.rights import MONITOR, Rights
from mqlite.errors import InvalidArgument, MqliteError, PermissionDenied
from mqlite.observation.requests import RequestMeter
from mqlite.observation.schema import Observation
from mqlite.observation.vocabulary import Access

if TYPE_CHECKING:
    from mqlite.embedded.core import Core

METRICS_PATH: Final = "/metrics"
METRICS_TYPE: Final[Header] = (b"content-type", CONTENT_TYPE)
OK: Final = "ok"

_RPC_PREFIX: Final = "/mqlite.v1."


class Monitoring:
    """Counts the requests of one broker, and observes its queue. Belongs to the event loop."""

    def __init__(self, core: Core, rpcs: Iterable[str], *, auth: bool, metrics: bool) -> None:
        """`rpcs` are the paths of the operations. Raises InvalidArgument for metrics without
        authentication."""
        if metrics and not auth:
            raise InvalidArgument("metrics needs authentication, which is off")
        self.metrics = metrics
        self._meter = RequestMeter(
            {path: path.removeprefix(_RPC_PREFIX) for path in rpcs}, (OK, *_codes())
        )
        self._core = core
        self._auth = auth

    def answered(self, path: str, code: str, seconds: float, handler_seconds: float | None) -> None:
        """A request was answered after `seconds`; its handler took `handler_seconds`, None
        where it was turned away before that."""
        self._meter.answered(path, code, seconds, handler_seconds)
        if self._auth and handler_seconds is not None and path not in EXEMPT:
            denied = code == PermissionDenied.code
            self._meter.authenticated("permission_denied" if denied else "success")

    def turned_away(self, problem: Exception) -> None:
        """A request was not let in."""
        outcome = problem.outcome if isinstance(problem, Refused) else "backend_error"
        self._meter.authenticated(outcome)

    async def observe(self, rights: Rights) -> Observation:
        """Everything, for somebody with these rights."""
        found = await self._core.observe_async()
        found.access = self._access(rights)
        found.http = self._meter.snapshot()
        return found

    async def exposition(self, rights: Rights) -> bytes:
        """The same, for Prometheus; the loop does not wait for it."""
        return await asyncio.to_thread(prometheus.exposition, await self.observe(rights))

    def _access(self, rights: Rights) -> Access:
        if not self._auth:
            return "anonymous"
        return "monitor" if rights == MONITOR else "manage"


def _codes() -> list[str]:
    """Every code of an error that a request can be answered with."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    return sorted({kind.code for kind in kinds if issubclass(kind, MqliteError)})

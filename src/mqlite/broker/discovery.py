"""`GET /` and `GET /healthz`: what anybody may ask."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mqlite import __version__, wire
from mqlite.links import DOCS_URL

HEALTH_PATH: Final = "/healthz"
HEALTHY: Final = b"ok"


def card(endpoints: Iterable[str], *, auth: bool, metrics: str | None, prefix: str) -> bytes:
    """The discovery card. Its paths resolve against the origin that served it, so under a
    mount they carry the prefix."""
    return wire.encode(
        wire.DiscoveryCard(
            name="mqlite",
            description="A durable message queue: JSON over HTTP, one POST per operation.",
            version=__version__,
            status="ok",
            auth="bearer" if auth else "none",
            docs=DOCS_URL,
            endpoints=[prefix + path for path in endpoints],
            health=prefix + HEALTH_PATH,
            metrics=None if metrics is None else prefix + metrics,
        )
    )

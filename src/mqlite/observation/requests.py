"""What a broker answers, and to whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mqlite.observation.histograms import Durations
from mqlite.observation.schema import Authentication, Handler, Http, Requests
from mqlite.observation.vocabulary import AUTHENTICATION, REQUEST_BOUNDS, AuthenticationOutcome


class _Rpc:
    """Requests to one operation: number and seconds by code, and how long its handler took."""

    __slots__ = ("counts", "handler", "seconds")

    def __init__(self, codes: Iterable[str]) -> None:
        self.counts = dict.fromkeys(codes, 0)
        self.seconds = dict.fromkeys(self.counts, 0.0)
        self.handler = Durations(REQUEST_BOUNDS)


class RequestMeter:
    """Counts requests to the operations it was made for, and no others: a path somebody made
    up is no label. Used on the broker's event loop only, so nothing is locked."""

    def __init__(self, rpcs: Mapping[str, str], codes: Iterable[str]) -> None:
        """`rpcs` are the labels of the operations by path, `codes` all that can be answered."""
        codes = tuple(codes)
        self._rpcs = {path: (label, _Rpc(codes)) for path, label in sorted(rpcs.items())}
        self._authentication: dict[AuthenticationOutcome, int] = dict.fromkeys(AUTHENTICATION, 0)

    def answered(self, path: str, code: str, seconds: float, handler_seconds: float | None) -> None:
        """A request was answered after `seconds`; its handler took `handler_seconds`, None
        where authentication kept it from one. Nothing for a path that is no operation's."""
        found = self._rpcs.get(path)
        if found is None:
            return
        rpc = found[1]
        rpc.counts[code] += 1
        rpc.seconds[code] += seconds
        if handler_seconds is not None:
            rpc.handler.add(handler_seconds)

    def authenticated(self, outcome: AuthenticationOutcome) -> None:
        """What became of a request's credential in the end."""
        self._authentication[outcome] += 1

    def snapshot(self) -> Http:
        rpcs = self._rpcs.values()
        return Http(
            state="available",
            requests=[
                Requests(rpc=label, code=code, count=count, duration_seconds=rpc.seconds[code])
                for label, rpc in rpcs
                for code, count in rpc.counts.items()
            ],
            handlers=[
                Handler(rpc=label, duration_seconds=rpc.handler.snapshot()) for label, rpc in rpcs
            ],
            authentication=[
                Authentication(outcome=outcome, count=count)
                for outcome, count in self._authentication.items()
            ],
        )

from __future__ import annotations

import pytest

from mqlite.engine import browse, deadletters, janitor, leases, receive, schedule, settle_batch

from .strategies import ANSWER_BYTES


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds so small that a handful of messages crosses them: chunks of two, answers of a
    few large bodies."""
    for module in (deadletters, janitor, leases, schedule, settle_batch):
        monkeypatch.setattr(module, "CHUNK", 2)
    for module in (browse, receive):
        monkeypatch.setattr(module, "RESPONSE_BODY_BYTES", ANSWER_BYTES)
    assert len(receive._within_budget.__defaults__) == 1
    monkeypatch.setattr(receive._within_budget, "__defaults__", (ANSWER_BYTES,))

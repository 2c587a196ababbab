"""A short run of the fuzzer; the long one is `make fuzz`."""

from __future__ import annotations

from . import fuzz


def test_a_few_thousand_inputs() -> None:
    outcomes = fuzz.fuzz(3000, seed=20)
    assert sum(outcomes.values()) == 3000
    assert outcomes["ran"] > 200, "most of what is tried should not be mere noise"

"""The integers that are stored and that travel: 64 bits with a sign."""

from __future__ import annotations

from typing import Final

MIN_INT64: Final = -(2**63)
MAX_INT64: Final = 2**63 - 1

"""When a failed delivery is tried again."""

from __future__ import annotations

from typing import Final

from mqlite.model import QueueConfig

MAX_DELAY_MS: Final = 2**62

_FNV_OFFSET: Final = 0xCBF29CE484222325
_FNV_PRIME: Final = 0x100000001B3
_MASK: Final = 0xFFFFFFFFFFFFFFFF


def delay_ms(config: QueueConfig, seed: str, failures: int) -> int:
    """The delay after this many failures (from 1): exponential, capped, and spread by a
    jitter that depends on `seed` and the failure alone (source: BlockQueue). 0 without a
    retry policy.
    """
    if not config.retry_initial_delay_ms:
        return 0
    cap = config.retry_max_delay_ms or MAX_DELAY_MS
    try:
        base = config.retry_initial_delay_ms * config.retry_multiplier ** (failures - 1)
    except OverflowError:
        base = float(cap)
    base = min(base, cap)
    if config.retry_jitter:
        unit = (_fnv1a(f"{seed}:{failures}") % 1_000_001) / 1_000_000
        base *= 1 + (2 * unit - 1) * config.retry_jitter
    return int(min(max(base, 0), cap))


def _fnv1a(text: str) -> int:
    value = _FNV_OFFSET
    for byte in text.encode():
        value = ((value ^ byte) * _FNV_PRIME) & _MASK
    return value

"""64-bit integers."""

from __future__ import annotations

__all__ = ["MAX_INT", "MIN_INT", "truncate", "wrap"]

MIN_INT = -(2**63)
MAX_INT = 2**63 - 1


def wrap(number: int) -> int:
    """A whole number folded into two's complement of 64 bits."""
    if MIN_INT <= number <= MAX_INT:
        return number
    return ((number - MIN_INT) & 0xFFFF_FFFF_FFFF_FFFF) + MIN_INT


def truncate(number: float) -> int:
    """A float as an integer: toward zero; what does not fit gives the least integer."""
    if not -9223372036854775808.0 <= number < 9223372036854775808.0:
        return MIN_INT
    return int(number)

"""Arithmetic on values of any kind (spec 6.1, 6.2, 6.9).

Like every operation that a node of the tree applies, these take the evaluation's budget first,
whether they need it or not, and raise Fault for values of the wrong kinds.
"""

from __future__ import annotations

import math
from typing import NoReturn

from .budget import Budget
from .errors import Fault
from .gotime import Duration, Time
from .integers import truncate, wrap
from .text import joined
from .values import Int64, Uint8, Value, go_name, is_int, is_number

__all__ = [
    "add",
    "divide",
    "int_range",
    "modulo",
    "multiply",
    "negate",
    "power",
    "subtract",
    "to_float",
    "to_int",
]


def _refuse(a: Value, op: str, b: Value) -> NoReturn:
    raise Fault(f"invalid operation: {go_name(a)} {op} {go_name(b)}")


def add(budget: Budget, a: Value, b: Value) -> Value:
    """a + b"""
    if type(a) is int and type(b) is int:
        return wrap(a + b)
    if is_number(a) and is_number(b):
        return _normal(a + b)
    if type(a) is str and type(b) is str:
        budget.build(len(a) + len(b))
        return joined(a + b)
    match a, b:
        case Time(), Duration():
            return a.plus(b)
        case Duration(), Time():
            return b.plus(a)
        case Duration(), Duration():
            return Duration(a.ns + b.ns)
    _refuse(a, "+", b)


def subtract(budget: Budget, a: Value, b: Value) -> Value:
    """a - b"""
    if type(a) is Time and type(b) is Time:
        return a.minus(b)
    if is_number(a) and is_number(b):
        return _normal(a - b)
    match a, b:
        case Time(), Duration():
            return Time(a.ns - b.ns, a.zone)
        case Duration(), Duration():
            return Duration(a.ns - b.ns)
    _refuse(a, "-", b)


def multiply(budget: Budget, a: Value, b: Value) -> Value:
    """a * b; a duration by a float is a float number of nanoseconds."""
    if is_number(a) and is_number(b):
        return _normal(a * b)
    left = a.ns if type(a) is Duration else a
    right = b.ns if type(b) is Duration else b
    if not is_number(left) or not is_number(right):
        _refuse(a, "*", b)
    product = left * right
    return product if type(product) is float else Duration(product)


def _normal(number: int | float) -> int | float:
    return number if type(number) is float else wrap(int(number))


def divide(budget: Budget, a: Value, b: Value) -> Value:
    """a / b, always a float; division by zero gives an infinity or NaN."""
    if not is_number(a) or not is_number(b):
        _refuse(a, "/", b)
    dividend, divisor = float(a), float(b)
    if divisor:
        return dividend / divisor
    if dividend == 0 or math.isnan(dividend):
        return math.nan
    return math.copysign(math.inf, dividend) * math.copysign(1.0, divisor)


def modulo(budget: Budget, a: Value, b: Value) -> Value:
    """a % b with the sign of a."""
    if not is_int(a) or not is_int(b):
        _refuse(a, "%", b)
    if b == 0:
        raise Fault("runtime error: integer divide by zero")
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def negate(budget: Budget, a: Value) -> Value:
    """-a"""
    if type(a) is Uint8:
        return Uint8(-a & 0xFF)
    if not is_number(a):
        raise Fault(f"invalid operation: - {go_name(a)}")
    return Int64.wrapped(-a) if type(a) is Int64 else _normal(-a)


def int_range(budget: Budget, a: Value, b: Value) -> range:
    """a..b; empty if it would not fit 64 bits."""
    first, last = to_int(a), to_int(b)
    size = wrap(last - first + 1)
    if size <= 0:
        return range(0)
    budget.grow(size)
    return range(first, last + 1)


def to_int(value: Value) -> int:
    """A number as an integer; floats are cut toward zero."""
    if type(value) is float:
        return truncate(value)
    if is_int(value):
        return int(value)
    raise Fault(f"invalid operation: int({go_name(value)})")


def to_float(value: Value) -> float:
    """A number as a float."""
    if is_number(value):
        return float(value)
    raise Fault(f"invalid operation: float({go_name(value)})")


def power(budget: Budget, a: Value, b: Value) -> float:
    """a ** b"""
    return _power(to_float(a), to_float(b))


def _power(base: float, exponent: float) -> float:
    special = _special_power(base, exponent)
    if special is not None:
        return special
    size = abs(exponent)
    fraction, whole = math.modf(size)
    if fraction and base < 0:
        return math.nan
    if whole >= 2.0**63:
        # Only a base of exactly -1 stays put; every other one goes to zero or infinity.
        if base == -1:
            return 1.0
        return 0.0 if (abs(base) < 1) == (exponent > 0) else math.inf
    mantissa, scale = _root_part(base, fraction)
    if mantissa != 1.0 and fraction > 0.5:
        whole += 1.0
    mantissa, scale = _whole_part(base, int(whole), mantissa, scale)
    if exponent < 0:
        mantissa, scale = 1.0 / mantissa, -scale
    try:
        return math.ldexp(mantissa, scale)
    except OverflowError:
        return math.copysign(math.inf, mantissa)


def _special_power(base: float, exponent: float) -> float | None:
    """The cases where squaring is not needed, or would not work."""
    if exponent == 0 or base == 1:
        return 1.0
    if exponent == 1:
        return base
    if math.isnan(base) or math.isnan(exponent):
        return math.nan
    if base == 0 or math.isinf(base) or math.isinf(exponent):
        return _limit_power(base, exponent)
    if exponent == 0.5 or exponent == -0.5:
        if base < 0:
            return math.nan
        return math.sqrt(base) if exponent > 0 else 1.0 / math.sqrt(base)
    return None


def _limit_power(base: float, exponent: float) -> float:
    if base == 0 and exponent < 0:
        odd = math.isfinite(exponent) and abs(exponent) < 2.0**53 and exponent % 2 == 1
        return math.copysign(math.inf, base) if odd else math.inf
    if base == -1:
        return 1.0
    return math.pow(base, exponent)


def _root_part(base: float, fraction: float) -> tuple[float, int]:
    """base to the power of the fraction, which is taken as negative above one half."""
    if fraction == 0:
        return 1.0, 0
    if fraction > 0.5:
        fraction -= 1.0
    return math.exp(fraction * math.log(base)), 0


def _whole_part(base: float, count: int, mantissa: float, scale: int) -> tuple[float, int]:
    """Multiply by base to the power of count, squaring its mantissa and exponent apart."""
    factor, factor_scale = math.frexp(base)
    while count:
        if abs(factor_scale) > 4096:
            # Beyond any float; the final scaling decides between zero and infinity.
            return mantissa, scale + factor_scale
        if count & 1:
            mantissa *= factor
            scale += factor_scale
        factor *= factor
        factor_scale <<= 1
        if abs(factor) < 0.5:
            factor += factor
            factor_scale -= 1
        count >>= 1
    return mantissa, scale

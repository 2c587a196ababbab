"""The builtins, by family. Importing this package declares all of them."""

from . import containers, conversions, loops, numbers, strings, times
from .loops import LOOPS
from .registry import BUILTINS, Builtin

__all__ = [
    "BUILTINS",
    "LOOPS",
    "Builtin",
    "containers",
    "conversions",
    "loops",
    "numbers",
    "strings",
    "times",
]

"""JSON with the rules of the reference (spec 10 and 13.2)."""

from .reader import from_json
from .writer import to_json

__all__ = ["from_json", "to_json"]

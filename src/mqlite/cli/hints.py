"""What a mistyped word was probably meant to be."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], dashes: str = "") -> str:
    """`, did you mean 'receive'?`, or nothing where no known word is near enough."""
    from difflib import get_close_matches

    found = get_close_matches(word.lower(), list(known), n=1, cutoff=0.7)
    return f", did you mean '{dashes}{found[0]}'?" if found else ""

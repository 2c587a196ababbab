"""Looks for secrets where none may be: see `guard.py`, the plugin, for what and where.

Runs in the process of the tests, and in every Python process that they start
(`child/sitecustomize.py`). Nothing is imported in order to be watched: a module is watched
from its import on, and what a program does not load stays unloaded.
"""

from __future__ import annotations

from guarding import places, processes, urls

_watching = False


def start() -> None:
    """Look from here on. A second call does nothing."""
    global _watching
    if not _watching:
        _watching = True
        for each in (places, urls, processes):
            each.watch()

"""Tests that fork."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., None])


def forks(test: Test) -> Test:
    """Marks a test that forks. From Python 3.12 on that warns where there are threads, which is
    what these tests are about."""
    marks = (
        pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no os.fork"),
        pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
    )
    for mark in marks:
        test = mark(test)
    return test

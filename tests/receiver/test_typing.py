"""What a type checker says of handlers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_handler_of_another_type_than_the_declared_one_is_an_error() -> None:
    command = [sys.executable, "-m", "mypy", "tests/receiver/declared.py"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr

"""Writes golden.json anew: PYTHONPATH=tests python tests/observation/golden.py"""

from __future__ import annotations

from observation.test_schema import GOLDEN, golden, whole

if __name__ == "__main__":
    [found] = whole.__wrapped__()  # type: ignore[attr-defined]
    GOLDEN.write_text(golden(found))

"""Python imports this at its start, here in each process that a test starts."""

import os
import sys

if "GUARD_REPORTS" in os.environ:
    _tests = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path.insert(0, _tests)
    try:
        import guarding

        guarding.start()
    finally:
        sys.path.remove(_tests)

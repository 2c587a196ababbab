"""`python -m mqlite` is the `mqlite` command."""

import sys

from mqlite.cli import main

if __name__ == "__main__":
    sys.exit(main())

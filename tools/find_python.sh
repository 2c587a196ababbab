#!/bin/sh
# Print the first Python that is new enough for mqlite. A name on the PATH proves nothing
# (version managers leave shims for versions that are not installed), so each one is run.
set -u
for candidate in ${PYTHON:-} python3.13 python3.12 python3.11 python3.14 python3 python; do
    if "$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        command -v "$candidate"
        exit 0
    fi
done
echo 'mqlite needs Python 3.11 or newer; none was found (set PYTHON to name one)' >&2
exit 1

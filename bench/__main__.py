"""All benchmarks, one table each: `python -m bench`."""

from __future__ import annotations

from bench import blocked, broker_process, filters, in_process
from bench.harness import print_table

print("## In the program\n")
in_process.main()
print("\n## Blocked backlogs and bytes\n")
blocked.main()
print("\n## The broker process\n")
print_table(broker_process.measure())
print("\n## Filters\n")
print_table(filters.measure())
print("\nHTTP Send beside a bare application: python bench/http_send.py")

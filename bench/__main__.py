"""All benchmarks, one table each: `python -m bench`."""

from __future__ import annotations

from bench import (
    access_keys,
    blocked,
    broker_process,
    client,
    filters,
    in_process,
    observe,
    receiver,
)
from bench.harness import print_table

print("## In the program\n")
in_process.main()
print("\n## Blocked backlogs and bytes\n")
blocked.main()
print("\n## The broker process\n")
print_table([*broker_process.measure(), *access_keys.measure()])
print("\n## Clients\n")
print_table(client.measure())
print("\n## Receiver\n")
print_table(receiver.measure())
print("\n## Filters\n")
print_table(filters.measure())
print("\n## Observation\n")
print_table(observe.measure())
print("\nHTTP Send beside a bare application: python bench/http_send.py")

"""The HTTP face of a queue: `mqlite.broker.serve` has the ways to start it."""

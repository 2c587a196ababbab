"""One suite for every way into a queue; see `ways`."""

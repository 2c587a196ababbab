"""Who runs the engine's operations: one package per kind of store, and what they share."""

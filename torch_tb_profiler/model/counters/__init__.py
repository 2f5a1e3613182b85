"""Hardware counters that a trace carries, and the work that they measured."""

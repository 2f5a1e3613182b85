"""Hardware counters of a trace, and the FLOPs and bytes that they measured."""

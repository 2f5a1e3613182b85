"""Idle time of a device: sums per step, causes as a table and a flame graph, single moments."""

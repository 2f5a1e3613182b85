"""The ranks of a job compared: clocks, matched collectives, waiting, stragglers."""

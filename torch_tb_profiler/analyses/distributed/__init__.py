"""The ranks of a job compared: clocks, matching, waiting, stragglers."""

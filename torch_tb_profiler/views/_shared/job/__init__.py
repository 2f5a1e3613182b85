"""The ranks of a job compared, for every view that speaks of them."""

"""The trace as typed columns, and the tables derived from it by pure functions."""

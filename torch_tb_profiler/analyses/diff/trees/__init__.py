"""Logical timelines as trees: of a recording, of all recordings of a side, of both sides."""

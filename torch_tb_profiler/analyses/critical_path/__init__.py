"""The critical path: what is on it, what to make faster, and how much slack everything else has."""

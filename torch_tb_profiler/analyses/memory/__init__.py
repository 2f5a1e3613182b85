"""Memory over the trace: what is allocated, by which code, and what keeps growing."""

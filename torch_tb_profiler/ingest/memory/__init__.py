"""Memory snapshots and exported memory timelines."""

"""Idle time: when a device runs nothing, what the host did that kept it waiting, and what emptied its queue."""

"""What several features read from the schedule of a trace: idle time, the path, and what a change would bring."""

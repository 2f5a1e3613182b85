"""Compiled functions for what a session derives: C (`native/schedule.c`, `native/job.c`), loaded with ctypes."""

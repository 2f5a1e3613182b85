"""Compiled functions for what a session derives from traces: plain C (`native/schedule.c`), loaded with ctypes."""

"""Hangs: who waits for whom in a job that stands still, from the flight recorders of its ranks."""

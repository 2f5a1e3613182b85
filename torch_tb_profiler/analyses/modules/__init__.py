"""Time and calls per module."""

"""The kernel table."""

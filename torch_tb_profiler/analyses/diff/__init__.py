"""Comparing two traces whose call trees are aligned by structure."""

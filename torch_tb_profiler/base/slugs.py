"""The tabs by name, as data: the help of the command line lists them without importing a view."""

TABS = (
    "overview",
    "operators",
    "kernels",
    "trace",
    "distributed",
    "memory",
    "diff",
    "modules",
    "lightning",
)
"""Slugs in the order of the navigation."""

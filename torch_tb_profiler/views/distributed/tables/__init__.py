"""The tables of a job page by page, and the map of its ranks."""

"""The contents of a file's cache entry: its key, its summary, the answers of views, and packed reductions."""

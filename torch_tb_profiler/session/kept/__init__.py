"""What the cache keeps of a file besides its columns, and under which names."""

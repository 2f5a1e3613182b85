"""How much of the device work has a known origin, and why the rest has none."""

"""How much communication overlaps with computation, from the busy times of streams per iteration."""

"""Rules about kernels that could be fewer or others. They gain what is beyond the roof, or beyond one pass."""

"""Rules about kernels that could be fewer or faster: they save time beyond the roofline, or beyond one pass."""

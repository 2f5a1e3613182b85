"""Recorded memory: allocator events of a trace, blocks, and the files that PyTorch exports beside traces."""

"""What the names of kernels tell: their family, a short name, whether they run on Tensor Cores."""

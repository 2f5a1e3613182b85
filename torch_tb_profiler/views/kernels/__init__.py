"""The Kernels tab."""

from torch_tb_profiler.views.kernels.build import VIEW

__all__ = ["VIEW"]

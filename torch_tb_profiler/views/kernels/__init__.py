"""The Kernels tab."""

from torch_tb_profiler.views.kernels.build import TAB

__all__ = ["TAB"]

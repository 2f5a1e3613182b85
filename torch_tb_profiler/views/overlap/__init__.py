"""The Overlap tab."""

from torch_tb_profiler.views.overlap.build import TAB

__all__ = ["TAB"]

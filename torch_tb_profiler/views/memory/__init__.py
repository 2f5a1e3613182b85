"""The Memory tab."""

from torch_tb_profiler.views.memory.build import TAB

__all__ = ["TAB"]

"""The Diff tab."""

from torch_tb_profiler.views.diff.build import TAB

__all__ = ["TAB"]

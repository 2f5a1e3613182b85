"""The Trace tab."""

from torch_tb_profiler.views.trace.build import TAB

__all__ = ["TAB"]

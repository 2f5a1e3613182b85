"""The Operators tab."""

from torch_tb_profiler.views.operators.build import TAB

__all__ = ["TAB"]

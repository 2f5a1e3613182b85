"""The Hangs tab."""

from torch_tb_profiler.views.hangs.build import TAB

__all__ = ["TAB"]

"""The Modules tab."""

from torch_tb_profiler.views.modules.build import TAB

__all__ = ["TAB"]
